"""The pixels of a training image: each is sampled once, straight from the source images.

A straight view (see `geometry`) is a crop and a resize of each tile; any other is one warp of each tile, cut to where it can
fall. Seams: a warped tile is continued by one repeated pixel, so that no grey shows between neighbours.

S: the training size. All images are BGR, uint8 (height, width, 3).
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from nightowl.data.augment.geometry import Matrix, Piece, Tile

Pixels = NDArray[np.uint8]
GREY = 114
_MARGIN = 4  # a piece may lie beyond the image by less than two source pixels, each at most two training pixels wide


class Canvas:
    """Memory for one training image, `image` (S, S, 3), with a margin around it that pieces may spill into."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._whole = np.empty((size + 2 * _MARGIN, size + 2 * _MARGIN, 3), np.uint8)
        self.image = self._whole[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN]

    def clear(self) -> None:
        """All grey, as upstream's borders are."""
        self._whole.fill(GREY)

    def place(self, source: Pixels, piece: Piece) -> None:
        """Resize the piece's rectangle of `source` into its place."""
        x, y = piece.x, piece.y
        target = self._whole[y.low + _MARGIN : y.high + _MARGIN, x.low + _MARGIN : x.high + _MARGIN]
        cut = source[y.first : y.last, x.first : x.last]
        cv2.resize(cut, (x.high - x.low, y.high - y.low), dst=target, interpolation=cv2.INTER_LINEAR)

    def warp(self, source: Pixels, tile: Tile, to_training: Matrix, projective: bool) -> None:
        """Put `tile` where `to_training`, from upstream's canvas, takes it."""
        x1, y1, x2, y2 = tile.shown
        if x1 >= x2 or y1 >= y2:
            return
        from_cut = to_training @ _shift(tile.offset[0] + x1, tile.offset[1] + y1)
        low, high = _reach(from_cut, x2 - x1, y2 - y1, self.size, projective)
        if (low >= high).any():
            return
        cut = cv2.copyMakeBorder(source[y1:y2, x1:x2], 1, 1, 1, 1, cv2.BORDER_REPLICATE)
        cut_to_target = _shift(-int(low[0]), -int(low[1])) @ from_cut @ _shift(-1, -1)
        target = self.image[low[1] : high[1], low[0] : high[0]]
        shape, kind = (target.shape[1], target.shape[0]), {"flags": cv2.INTER_LINEAR, "borderMode": cv2.BORDER_TRANSPARENT}
        if projective:
            cv2.warpPerspective(cut, cut_to_target, shape, dst=target, **kind)
        else:
            cv2.warpAffine(cut, cut_to_target[:2], shape, dst=target, **kind)

    def blend(self, other: "Canvas", ratio: float) -> None:
        """`ratio` of this image and the rest of `other`, rounded down as upstream's mixup does."""
        cv2.addWeighted(self.image, ratio, other.image, 1 - ratio, -0.5 + 1e-6, dst=self.image)


def _shift(x: int, y: int) -> Matrix:
    moved = np.eye(3)
    moved[:2, 2] = x, y
    return moved


def _reach(moved: Matrix, width: int, height: int, size: int, projective: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last (exclusive) x and y of the training image that a rectangle of the source can fall on."""
    corners = np.array([(-1, -1, 1), (width, -1, 1), (-1, height, 1), (width, height, 1)]) @ moved.T
    if projective and (corners[:, 2] <= 0).any():
        return np.zeros(2, np.int64), np.full(2, size)
    points = corners[:, :2] / corners[:, 2:]
    low, high = np.floor(points.min(0)), np.ceil(points.max(0)) + 1
    return np.clip(low, 0, size).astype(np.int64), np.clip(high, 0, size).astype(np.int64)
