"""Boxes of a view in its training image: which of them stay, by upstream's rules, and where they are, by the pixels.

Which boxes stay is decided on the exact transform (`Mosaic._cat_labels`, `RandomPerspective.apply_instances` of ultralytics).
Where a piece was rounded to whole pixels, its boxes follow it: at most half a pixel from the exact place.

M: boxes of all the view's images together. All boxes are boxes_xyxy in pixels.
"""

import numpy as np
from numpy.typing import NDArray

from nightowl.data.augment.geometry import Matrix, Piece, Size, Tile

Boxes = NDArray[np.float64]
_MIN_SIDE, _MAX_ASPECT, _MIN_AREA_KEPT, _EPSILON = 2, 100, 0.10, 1e-16
_CORNERS = [0, 1, 2, 3, 0, 3, 2, 1]


def on_canvas(boxes: list[Boxes], laid: list[Tile]) -> Boxes:
    """Each image's boxes moved to where its tile lies, one after the other: (M, 4)."""
    offsets = np.repeat([tile.offset * 2 for tile in laid], [len(each) for each in boxes], axis=0)
    moved: Boxes = np.concatenate(boxes) + offsets
    return moved


def transformed(boxes: Boxes, to_training: Matrix) -> Boxes:
    """The upright boxes around the transformed corners."""
    corners = np.ones((len(boxes) * 4, 3))
    corners[:, :2] = boxes[:, _CORNERS].reshape(-1, 2)
    moved = corners @ to_training.T
    points = (moved[:, :2] / moved[:, 2:]).reshape(-1, 4, 2)
    return np.concatenate((points.min(1), points.max(1)), axis=1)


def kept(canvas: Boxes, training: Boxes, scale: float) -> NDArray[np.bool_]:
    """Which boxes stay: wider and higher than 2 px, with more than a tenth of their area, no sliver.

    `canvas` before and `training` after the transform, both clipped.
    """
    before = (canvas[:, 2:] - canvas[:, :2]) * scale
    after = training[:, 2:] - training[:, :2]
    width, height = after[:, 0], after[:, 1]
    aspect = np.maximum(width / (height + _EPSILON), height / (width + _EPSILON))
    area_kept = width * height / (before[:, 0] * before[:, 1] + _EPSILON)
    large = (width > _MIN_SIDE) & (height > _MIN_SIDE)
    decided: NDArray[np.bool_] = large & (area_kept > _MIN_AREA_KEPT) & (aspect < _MAX_ASPECT) & (before > 0).all(1)
    return decided


def followed(canvas: Boxes, laid: list[Tile], pieces: list[Piece | None], counts: list[int], to_training: Matrix) -> Boxes:
    """Boxes on the canvas of a straight view, put where the pixels of their tile's piece went."""
    exact = (to_training[0, 0], to_training[1, 1], to_training[0, 2], to_training[1, 2])
    rows = [_scale_and_shift(tile, done) if done else exact for tile, done in zip(laid, pieces, strict=True)]
    each = np.repeat(rows, counts, axis=0)
    moved: Boxes = canvas * each[:, [0, 1, 0, 1]] + each[:, [2, 3, 2, 3]]
    return moved


def _scale_and_shift(tile: Tile, done: Piece) -> tuple[float, float, float, float]:
    x, y = done.x, done.y
    shift_x = x.low - x.scale * (x.first + tile.offset[0])
    shift_y = y.low - y.scale * (y.first + tile.offset[1])
    return x.scale, y.scale, shift_x, shift_y


def clipped(boxes: Boxes, canvas: Size) -> Boxes:
    """Boxes cut at the canvas' edges."""
    return np.clip(boxes, 0, (*canvas, *canvas))
