"""The pixels of a training image: each is sampled once, straight from the source images.

A straight view (see `geometry`) is a crop and a resize of each tile; any other is one warp of each tile, cut to where it can
fall. Seams: a warped tile is continued by one repeated pixel, so that no grey shows between neighbours.

S: the training size. All images are BGR, uint8 (height, width, 3), their rows without gaps: OpenCV splits others slowly.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from nightowl.data.augment.geometry import Matrix, Piece, Tile

Pixels = NDArray[np.uint8]
GREY = 114
_MOST_SPILL = 2  # training pixels beyond an edge: less than one source pixel, magnified by less than two


def clear(image: Pixels) -> None:
    """All grey, as upstream's borders are."""
    image.fill(GREY)


def spill_memory(size: int) -> Pixels:
    """Memory for `place`, so that it takes none of its own: touching fresh pages takes longer than filling them."""
    return np.empty((size + 2 * _MOST_SPILL) ** 2 * 3, np.uint8)


def place(image: Pixels, source: Pixels, piece: Piece, spill: Pixels) -> None:
    """Resize the piece's rectangle of `source` into its place in `image`, by way of `spill` where it goes beyond."""
    (x1, x2, left, right), (y1, y2, top, bottom) = piece
    cut, shape, size = source[y1:y2, x1:x2], (right - left, bottom - top), len(image)
    if left >= 0 and top >= 0 and right <= size and bottom <= size:
        cv2.resize(cut, shape, dst=image[top:bottom, left:right], interpolation=cv2.INTER_LINEAR)
    else:
        whole = spill[: shape[0] * shape[1] * 3].reshape(bottom - top, right - left, 3)
        cv2.resize(cut, shape, dst=whole, interpolation=cv2.INTER_LINEAR)
        x, y = max(left, 0), max(top, 0)
        image[y : min(bottom, size), x : min(right, size)] = whole[y - top : size - top, x - left : size - left]


def warp(image: Pixels, source: Pixels, tile: Tile, to_training: Matrix, projective: bool) -> None:
    """Put `tile` where `to_training`, from upstream's canvas, takes it."""
    x1, y1, x2, y2 = tile.shown
    if x1 >= x2 or y1 >= y2:
        return
    from_cut = to_training @ _shift(tile.offset[0] + x1, tile.offset[1] + y1)
    (left, top), (right, bottom) = _reach(from_cut, x2 - x1, y2 - y1, len(image), projective)
    if left >= right or top >= bottom:
        return
    cut = cv2.copyMakeBorder(source[y1:y2, x1:x2], 1, 1, 1, 1, cv2.BORDER_REPLICATE)
    cut_to_target = _shift(-left, -top) @ from_cut @ _shift(-1, -1)
    target, shape = image[top:bottom, left:right], (right - left, bottom - top)
    if projective:
        cv2.warpPerspective(cut, cut_to_target, shape, dst=target, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_TRANSPARENT)
    else:
        cv2.warpAffine(cut, cut_to_target[:2], shape, dst=target, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_TRANSPARENT)


def blend(image: Pixels, other: Pixels, ratio: float) -> None:
    """`ratio` of `image` and the rest of `other`, in `image`; rounded down, as upstream's mixup does."""
    cv2.addWeighted(image, ratio, other, 1 - ratio, -0.5 + 1e-6, dst=image)


def _shift(x: int, y: int) -> Matrix:
    return np.array(((1.0, 0.0, x), (0.0, 1.0, y), (0.0, 0.0, 1.0)))


def _reach(moved: Matrix, width: int, height: int, size: int, projective: bool) -> tuple[tuple[int, int], tuple[int, int]]:
    """The first and last (exclusive) x and y of the training image that a rectangle of the source can fall on."""
    corners = np.array([(-1, -1, 1), (width, -1, 1), (-1, height, 1), (width, height, 1)]) @ moved.T
    if projective and (corners[:, 2] <= 0).any():
        return (0, 0), (size, size)
    points = corners[:, :2] / corners[:, 2:]
    reached = np.clip((np.floor(points.min(0)), np.ceil(points.max(0)) + 1), 0, size).astype(int)
    (left, top), (right, bottom) = reached.tolist()
    return (left, top), (right, bottom)
