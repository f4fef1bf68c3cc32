"""Where the images of a view lie on its canvas, and where each goes in the training image.

The canvas is upstream's: a mosaic of 2S x 2S, or the one image. It is never built: without rotation, shear and perspective the
part of each image that is seen is one rectangle of whole pixels that is resized into one rectangle of whole pixels. Rounding
moves edges by at most half a pixel; `Piece` says what was done, so that boxes can follow the pixels.

S: the training size. Coordinates are continuous, in pixels, origin at the top left corner of the top left pixel.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nightowl.data.augment.draw import View

Matrix = NDArray[np.float64]
Size = tuple[int, int]  # width, height


class Straight(NamedTuple):
    """From canvas to training image without rotation, shear and perspective: training = scale * canvas + shift."""

    scale: float
    shift_x: float
    shift_y: float


class Tile(NamedTuple):
    """One image on the canvas: its number, where its origin lies there, and what of it the canvas shows (x1, y1, x2, y2)."""

    image: int
    offset: tuple[int, int]
    shown: tuple[int, int, int, int]


class Span(NamedTuple):
    """Along one axis: source pixels `first` to `last` (exclusive) become training pixels `low` to `high`, which may lie beyond
    the training image by less than the width of a source pixel."""

    first: int
    last: int
    low: int
    high: int

    @property
    def scale(self) -> float:
        return (self.high - self.low) / (self.last - self.first)


class Piece(NamedTuple):
    """A rectangle of the source and the rectangle of the training image that it fills."""

    x: Span
    y: Span


def canvas_size(view: View, sizes: Sequence[Size], size: int) -> Size:
    """Width and height of the canvas; `sizes` are those of the view's images."""
    return sizes[0] if view.centre is None else (2 * size, 2 * size)


def tiles(view: View, sizes: Sequence[Size], size: int) -> list[Tile]:
    """The view's images on its canvas; those of a mosaic meet at its centre (`Mosaic.get_params` of ultralytics)."""
    if view.centre is None:
        return [Tile(view.images[0], (0, 0), (0, 0, *sizes[0]))]
    laid = []
    for number, (image, (width, height)) in enumerate(zip(view.images, sizes, strict=True)):
        x, y = view.centre
        dx = x if number in (1, 3) else x - width
        dy = y if number in (2, 3) else y - height
        shown = (max(0, -dx), max(0, -dy), min(width, 2 * size - dx), min(height, 2 * size - dy))
        laid.append(Tile(image, (dx, dy), shown))
    return laid


def is_straight(view: View) -> bool:
    """No rotation, shear or perspective: rectangles stay rectangles."""
    return view.degrees == 0 and view.shear_degrees == (0, 0) and view.perspective == (0, 0)


def straight(view: View, canvas: Size, size: int) -> Straight:
    """What `matrix` gives for a straight view, whose canvas keeps its centre up to `translate`."""
    (width, height), (x, y) = canvas, view.translate
    return Straight(view.scale, x * size - view.scale * width / 2, y * size - view.scale * height / 2)


def matrix(view: View, canvas: Size, size: int) -> Matrix:
    """From canvas to training image, (3, 3): `RandomPerspective._compute_affine_matrix` of ultralytics."""
    centred, perspective, rotated, sheared, moved = (np.eye(3) for _ in range(5))
    centred[:2, 2] = -canvas[0] / 2, -canvas[1] / 2
    perspective[2, :2] = view.perspective
    angle = math.radians(view.degrees)
    cosine, sine = view.scale * math.cos(angle), view.scale * math.sin(angle)
    rotated[:2, :2] = (cosine, sine), (-sine, cosine)
    sheared[0, 1], sheared[1, 0] = (math.tan(math.radians(degrees)) for degrees in view.shear_degrees)
    moved[:2, 2] = view.translate[0] * size, view.translate[1] * size
    return moved @ sheared @ rotated @ perspective @ centred


def piece(tile: Tile, to_training: Straight, size: int) -> Piece | None:
    """The part of `tile` that a straight view shows, or None when it lies outside."""
    (x1, y1, x2, y2), (dx, dy), (scale, shift_x, shift_y) = tile.shown, tile.offset, to_training
    x = _span(x1, x2, scale, scale * dx + shift_x, size)
    y = _span(y1, y2, scale, scale * dy + shift_y, size) if x else None
    return Piece(x, y) if x and y else None


def _span(first: int, last: int, scale: float, shift: float, size: int) -> Span | None:
    """Cut to what is seen: to the nearest source pixel, or to the next one outside when the nearest is half a pixel off."""
    seen, unseen = -shift / scale, (size - shift) / scale
    if first < seen:
        first = max(first, _nearest(seen, scale, math.floor))
    if last > unseen:
        last = min(last, _nearest(unseen, scale, math.ceil))
    low, high = round(scale * first + shift), round(scale * last + shift)
    return Span(first, last, low, high) if first < last and low < high and low < size and high > 0 else None


def _nearest(edge: float, scale: float, outside: Callable[[float], int]) -> int:
    nearest = round(edge)
    return nearest if abs(nearest - edge) * scale < 0.5 else outside(edge)
