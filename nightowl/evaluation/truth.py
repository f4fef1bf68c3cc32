"""Truth and detections side by side: which detection found which object.

Two matchings. `match` is COCO's, a class at a time: best score first, each takes the free object of highest IoU; a crowd
(`ignore`) is taken any number of times and counts neither way. `confusion` asks what an object was taken for: classes are
not looked at, pairs of highest IoU first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nightowl.data.manifest import Image
from nightowl.evaluation.detections import Detections

FALSE_ALARM, IGNORED = -1, -2
_BOXES_AT_ONCE = 32


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """M labelled objects: image_index (M,) into `images`, class_id (M,) into `classes`, boxes_xyxy (M, 4), ignore (M,)."""

    classes: tuple[str, ...]
    images: tuple[str, ...]
    image_index: NDArray[np.int32]
    class_id: NDArray[np.int32]
    boxes_xyxy: NDArray[np.float64]
    ignore: NDArray[np.bool_]

    def among(self, classes: tuple[str, ...]) -> "Truth":
        """The objects of these classes, numbered by them."""
        place = {name: index for index, name in enumerate(classes)}
        renumber = np.array([place.get(name, -1) for name in self.classes], np.int32)
        known = renumber[self.class_id] >= 0
        return Truth(
            classes,
            self.images,
            self.image_index[known],
            renumber[self.class_id[known]],
            self.boxes_xyxy[known],
            self.ignore[known],
        )

    def of_images(self, inside: NDArray[np.bool_]) -> "Truth":
        """The objects on the images (I,) that are inside; the others are as if never looked at."""
        kept = inside[self.image_index]
        number = np.cumsum(inside, dtype=np.int32) - 1
        return Truth(
            self.classes,
            tuple(path for path, own in zip(self.images, inside, strict=True) if own),
            number[self.image_index[kept]],
            self.class_id[kept],
            self.boxes_xyxy[kept],
            self.ignore[kept],
        )

    def counts(self) -> NDArray[np.int64]:
        """Objects a class, crowds not counted."""
        return np.bincount(self.class_id[~self.ignore], minlength=len(self.classes))


def truth_of(classes: tuple[str, ...], images: Sequence[Image], among: tuple[str, ...] | None = None) -> Truth:
    """The labels of `images`, whose class ids index `classes`; with `among`, only those classes, numbered by it."""
    kept = among or classes
    place = {index: kept.index(name) for index, name in enumerate(classes) if name in kept}
    rows = [(i, place[box.class_id], box) for i, image in enumerate(images) for box in image.boxes if box.class_id in place]
    return Truth(
        kept,
        tuple(image.path for image in images),
        np.array([row[0] for row in rows], np.int32),
        np.array([row[1] for row in rows], np.int32),
        np.array([row[2][1:5] for row in rows], np.float64).reshape(-1, 4),
        np.array([row[2].ignore for row in rows], np.bool_),
    )


def overlaps(boxes: NDArray[np.floating], others: NDArray[np.floating], crowd: NDArray[np.bool_]) -> NDArray[np.float64]:
    """IoU (N, M) of boxes_xyxy (N, 4) with (M, 4); with a crowd, the share of the box that lies in it.

    Only the objects beside a few neighbouring boxes are looked at at once: what a processor's cache holds.
    """
    result = np.zeros((len(boxes), len(others)))
    left, top, right, bottom = np.ascontiguousarray(others.astype(np.float64).T)
    area = (right - left) * (bottom - top)
    order = np.argsort(boxes[:, 0])
    for start in range(0, len(boxes), _BOXES_AT_ONCE):
        rows = order[start : start + _BOXES_AT_ONCE]
        x1, y1, x2, y2 = boxes[rows].astype(np.float64).T[..., None]
        near = np.flatnonzero((left < x2.max()) & (right > x1.min()))
        shared = np.maximum(np.minimum(right[near], x2) - np.maximum(left[near], x1), 0)
        shared *= np.maximum(np.minimum(bottom[near], y2) - np.maximum(top[near], y1), 0)
        own = (x2 - x1) * (y2 - y1)
        whole = np.where(crowd[near], own, own + area[near] - shared)
        result[rows[:, None], near] = np.divide(shared, whole, out=shared, where=whole > 0)
    return result


def match(truth: Truth, detections: Detections, iou: float = 0.5) -> NDArray[np.int64]:
    """For each detection (N,) the index of the object it found, FALSE_ALARM, or IGNORED when it lies in a crowd."""
    result = np.full(len(detections), FALSE_ALARM, np.int64)
    num_classes = len(truth.classes)
    keys = truth.image_index.astype(np.int64) * num_classes + truth.class_id
    found_keys = detections.image_index.astype(np.int64) * num_classes + detections.class_id
    for objects, unsorted in _groups(keys, found_keys):
        found = unsorted[np.argsort(-detections.score[unsorted], kind="stable")]
        table = overlaps(detections.boxes_xyxy[found], truth.boxes_xyxy[objects], truth.ignore[objects])
        taken = _match_one(table, truth.ignore[objects], iou)
        result[found] = np.where(taken >= 0, objects[np.maximum(taken, 0)], taken)
    return result


def confusion(truth: Truth, detections: Detections, confidence: float, iou: float = 0.5) -> NDArray[np.int64]:
    """Counts (C + 1, C + 1) of detections from `confidence` up: rows predicted (last: nothing), columns true (last: none)."""
    num_classes = len(truth.classes)
    counts = np.zeros((num_classes + 1, num_classes + 1), np.int64)
    shown = detections.from_confidence(confidence)
    order, shown_order = np.argsort(truth.image_index, kind="stable"), np.argsort(shown.image_index, kind="stable")
    for image in range(len(truth.images)):
        objects, found = _run(order, truth.image_index, image), _run(shown_order, shown.image_index, image)
        ignore = truth.ignore[objects]
        table = overlaps(shown.boxes_xyxy[found], truth.boxes_xyxy[objects], ignore)
        predicted, true = shown.class_id[found], truth.class_id[objects]
        pairs = _closest_pairs(table, ignore, iou)
        for row, column in pairs:
            counts[predicted[row], true[column]] += 1
        free = np.setdiff1d(np.arange(len(found)), [row for row, _ in pairs])
        alarms = free[~(table[free][:, ignore] >= iou).any(axis=1)]
        np.add.at(counts, (predicted[alarms], num_classes), 1)
        missed = np.setdiff1d(np.flatnonzero(~ignore), [column for _, column in pairs])
        np.add.at(counts, (num_classes, true[missed]), 1)
    return counts


def _groups(keys: NDArray[np.int64], others: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Indices into both arrays for every key that occurs in both."""
    order, other_order = np.argsort(keys, kind="stable"), np.argsort(others, kind="stable")
    for key in np.intersect1d(keys, others):
        yield _run(order, keys, int(key)), _run(other_order, others, int(key))


def _run(order: NDArray[np.int64], keys: NDArray[np.integer], key: int) -> NDArray[np.int64]:
    first, last = np.searchsorted(keys, [key, key + 1], sorter=order)
    return order[first:last]


def _match_one(table: NDArray[np.float64], ignore: NDArray[np.bool_], iou: float) -> NDArray[np.int64]:
    """COCO's greedy matching of one image and class, rows best score first: columns found, or FALSE_ALARM, or IGNORED."""
    taken = np.full(len(table), FALSE_ALARM, np.int64)
    free = ~ignore
    for row, values in enumerate(table):
        real = np.where(free, values, -1.0)
        best = len(real) - 1 - int(np.argmax(real[::-1]))  # of equal IoU COCO takes the last
        if real[best] >= iou:
            taken[row], free[best] = best, False
        elif (values[ignore] >= iou).any():
            taken[row] = IGNORED
    return taken


def _closest_pairs(table: NDArray[np.float64], ignore: NDArray[np.bool_], iou: float) -> list[tuple[int, int]]:
    """Pairs (row, column) of IoU from `iou` up, the closest first, each row and column once, none of a column to `ignore`."""
    rows, columns = np.nonzero(table >= iou)
    rows, columns = rows[~ignore[columns]], columns[~ignore[columns]]
    order = np.argsort(-table[rows, columns], kind="stable")
    used_rows, used_columns, pairs = set[int](), set[int](), list[tuple[int, int]]()
    for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if row not in used_rows and column not in used_columns:
            pairs.append((row, column))
            used_rows.add(row)
            used_columns.add(column)
    return pairs
