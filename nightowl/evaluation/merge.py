"""Detections of an image's tiles as detections of the image.

An object on the edge of two tiles is found in both, often cut in one. Two boxes of one class and of different tiles match when
their intersection is a large enough part of the smaller one; within a tile the network's own suppression has decided already.
Going from the best score down, each box takes up what matches it: as their hull (`union`) or by itself (`suppress`).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.postprocess import Found
from nightowl.params import TilingParams


def merge_tiles(tiles: Sequence[Found], tiling: TilingParams, max_detections: int) -> Found:
    """What was found on the tiles of one image, boxes in its pixels, as one: best first, at most `max_detections`."""
    if len(tiles) == 1:
        return tiles[0]
    tile = np.repeat(np.arange(len(tiles)), [len(found.score) for found in tiles])
    boxes, score, class_id = (np.concatenate(parts) for parts in zip(*tiles, strict=True))
    order = np.argsort(-score, kind="stable")
    boxes, score, class_id, tile = boxes[order], score[order], class_id[order], tile[order]
    merged = [_merge_class(boxes, tile, np.flatnonzero(class_id == each), tiling) for each in np.unique(class_id)]
    kept = np.sort(np.concatenate([np.zeros(0, np.int64), *merged]))[:max_detections]
    return Found(boxes[kept], score[kept], class_id[kept])


def _merge_class(
    boxes: NDArray[np.float32], tile: NDArray[np.int64], of_class: NDArray[np.int64], tiling: TilingParams
) -> NDArray[np.int64]:
    """Indices of the boxes of one class that stay, `of_class` being all of them, best first; their `boxes` grow in place."""
    kept, left = [], of_class
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        matching = (tile[left] != tile[best]) & (_part_of_smaller(boxes[best], boxes[left]) >= tiling.merge_overlap)
        if tiling.merge == "union" and matching.any():
            taken = boxes[left[matching]]
            boxes[best, :2] = np.minimum(boxes[best, :2], taken[:, :2].min(axis=0))
            boxes[best, 2:] = np.maximum(boxes[best, 2:], taken[:, 2:].max(axis=0))
        left = left[~matching]
    return np.array(kept, np.int64)


def _part_of_smaller(box: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """Intersection of `box` (4,) with each of `others` (N, 4), by the area of the smaller of the two; 0 without area."""
    sides = np.maximum(np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2]), 0)
    smaller = np.minimum(np.prod(box[2:] - box[:2]), np.prod(others[:, 2:] - others[:, :2], axis=1))
    part: NDArray[np.float32] = np.divide(
        np.prod(sides, axis=1), smaller, out=np.zeros(len(others), np.float32), where=smaller > 0
    )
    return part
