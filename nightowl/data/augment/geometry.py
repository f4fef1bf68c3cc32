"""Where the images of a view lie on its canvas, and where each goes in the training image.

The canvas is upstream's: a mosaic of 2S x 2S, or the one image. It is never built: without rotation, shear and perspective the
part of each image that is seen is one rectangle of whole pixels that is resized into one rectangle of whole pixels. Rounding
moves edges by at most half a pixel; `Piece` says what was done, so that boxes can follow the pixels.

S: the training size. Coordinates are continuous, in pixels, origin at the top left corner of the top left pixel.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nightowl.data.augment.draw import View

Matrix = NDArray[np.float64]
Size = tuple[int, int]  # width, height


@dataclass(frozen=True, slots=True)
class Tile:
    """One image on the canvas: its number, where its origin lies there, and what of it the canvas shows (x1, y1, x2, y2)."""

    image: int
    offset: tuple[int, int]
    shown: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Span:
    """Along one axis: source pixels `first` to `last` (exclusive) become training pixels `low` to `high`, which may lie
    beyond the training image by a few."""

    first: int
    last: int
    low: int
    high: int

    @property
    def scale(self) -> float:
        return (self.high - self.low) / (self.last - self.first)


@dataclass(frozen=True, slots=True)
class Piece:
    """A rectangle of the source and the rectangle of the training image that it fills."""

    x: Span
    y: Span


def canvas_size(view: View, sizes: list[Size], size: int) -> Size:
    """Width and height of the canvas; `sizes` are those of the view's images."""
    return sizes[0] if view.centre is None else (2 * size, 2 * size)


def tiles(view: View, sizes: list[Size], size: int) -> list[Tile]:
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


def piece(tile: Tile, to_training: Matrix, size: int) -> Piece | None:
    """The part of `tile` that a straight view shows, or None when it lies outside."""
    x = _span(tile.shown[0], tile.shown[2], tile.offset[0], to_training[0, 0], to_training[0, 2], size)
    y = _span(tile.shown[1], tile.shown[3], tile.offset[1], to_training[1, 1], to_training[1, 2], size)
    return None if x is None or y is None else Piece(x, y)


def _span(first: int, last: int, offset: int, scale: float, shift: float, size: int) -> Span | None:
    first = max(first, math.floor(-shift / scale - offset))
    last = min(last, math.ceil((size - shift) / scale - offset))
    low, high = round(scale * (first + offset) + shift), round(scale * (last + offset) + shift)
    return Span(first, last, low, high) if first < last and low < high and low < size and high > 0 else None
