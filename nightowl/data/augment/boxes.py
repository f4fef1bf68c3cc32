"""Boxes of a view in its training image: which of them stay, by upstream's rules, and where they are, by the pixels.

Which boxes stay is decided on the exact transform (`Mosaic._cat_labels`, `RandomPerspective.apply_instances` of ultralytics).
Where a piece was rounded to whole pixels, its boxes follow it: at most half a pixel from the exact place.

M: boxes of all the view's images together. All boxes are boxes_xyxy in pixels unless said otherwise.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nightowl.data.augment.geometry import Matrix, Piece, Size, Straight, Tile

Boxes = NDArray[np.float64]
_MIN_SIDE, _MAX_ASPECT, _MIN_AREA_KEPT, _EPSILON = 2, 100, 0.10, 1e-16
_CORNERS = [0, 1, 2, 3, 0, 3, 2, 1]


def on_canvas(boxes_xyxy_norm: Boxes, counts: Sequence[int], laid: Sequence[Tile], sizes: Sequence[Size]) -> Boxes:
    """Boxes of each image in turn, `counts` of them, moved to where its tile lies: (M, 4)."""
    scales = np.repeat([size * 2 for size in sizes], counts, axis=0)
    offsets = np.repeat([tile.offset * 2 for tile in laid], counts, axis=0)
    moved: Boxes = boxes_xyxy_norm * scales + offsets
    return moved


def transformed(boxes: Boxes, to_training: Matrix) -> Boxes:
    """The upright boxes around the transformed corners."""
    corners = np.ones((len(boxes) * 4, 3))
    corners[:, :2] = boxes[:, _CORNERS].reshape(-1, 2)
    moved = corners @ to_training.T
    points = (moved[:, :2] / moved[:, 2:]).reshape(-1, 4, 2)
    return np.concatenate((points.min(1), points.max(1)), axis=1)


def straightly(boxes: Boxes, to_training: Straight) -> Boxes:
    """The same where rectangles stay rectangles."""
    shift = np.array((to_training.shift_x, to_training.shift_y) * 2)
    moved: Boxes = boxes * to_training.scale + shift
    return moved


def followed(boxes: Boxes, counts: Sequence[int], laid: Sequence[Tile], pieces: Sequence[Piece | None]) -> Boxes:
    """Boxes on the canvas of a straight view, put where the pixels of their tile's piece went; (0, 0, 0, 0) without a piece."""
    rows = [_scale_and_shift(tile, done) if done else (0.0,) * 8 for tile, done in zip(laid, pieces, strict=True)]
    each = np.repeat(rows, counts, axis=0)
    moved: Boxes = boxes * each[:, :4] + each[:, 4:]
    return moved


def kept(canvas: Boxes, training: Boxes, scale: float) -> NDArray[np.bool_]:
    """Which boxes stay: wider and higher than 2 px, with more than a tenth of their area, no sliver.

    `canvas` before and `training` after the transform, both clipped.
    """
    before = canvas[:, 2:] - canvas[:, :2]
    after = training[:, 2:] - training[:, :2]
    area_before, area_after = before[:, 0] * before[:, 1] * scale**2, after[:, 0] * after[:, 1]
    short, long = after.min(1), after.max(1)
    decided: NDArray[np.bool_] = (
        (short > _MIN_SIDE)
        & (area_after > _MIN_AREA_KEPT * (area_before + _EPSILON))
        & (long < _MAX_ASPECT * (short + _EPSILON))
        & (area_before > 0)
    )
    return decided


def clipped(boxes: Boxes, width: int, height: int) -> Boxes:
    """Boxes cut at the edges of an image."""
    return np.minimum(np.maximum(boxes, 0), (width, height, width, height))


def _scale_and_shift(tile: Tile, done: Piece) -> tuple[float, ...]:
    x, y = done.x, done.y
    shift_x = x.low - x.scale * (x.first + tile.offset[0])
    shift_y = y.low - y.scale * (y.first + tile.offset[1])
    return (x.scale, y.scale) * 2 + (shift_x, shift_y) * 2
