"""Which detection found an object at each of COCO's ten IoU thresholds, worked out once and kept, so that average precision
under any weighting of the images is a weighted count.

The matching is COCO's: an image and class at a time, best score first, each takes the free object of highest IoU (of equals
the last); a crowd is taken any number of times and counts neither way; from the `max_detections` best on, nothing counts. Where
one size is asked for, objects of another are taken last and once and count neither way, as do detections of another size that
find nothing.

T IoU thresholds, N detections, M objects, I images, P pairs of a detection and an object.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.detections import Detections
from nightowl.evaluation.sizes import EVERY_AREA, within
from nightowl.evaluation.truth import Truth

IOU_THRESHOLDS = np.linspace(0.5, 0.95, 10)
_LEAST_IOU = np.minimum(IOU_THRESHOLDS, 1 - 1e-10)[:, None]  # as COCO compares
_PAIRS_AT_ONCE = 1_000_000  # bounds memory to about 200 MB on crowded images


@dataclass(frozen=True, slots=True, eq=False)
class ClassMatches:
    """One class: its detections best first, image_index (N,), score (N,), found and ignored (T, N); num_truth (I,) an image."""

    image_index: NDArray[np.int64]
    score: NDArray[np.float32]
    found: NDArray[np.bool_]
    ignored: NDArray[np.bool_]
    num_truth: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """One model on one list of images: a ClassMatches for each of `classes`."""

    classes: tuple[str, ...]
    images: tuple[str, ...]
    per_class: tuple[ClassMatches, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Pairs that reach the lowest threshold, in order of detection, then object: detection, truth, iou, each (P,)."""

    detection: NDArray[np.int64]
    truth: NDArray[np.int64]
    iou: NDArray[np.float64]

    def select(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> "_Pairs":
        return _Pairs(self.detection[chosen], self.truth[chosen], self.iou[chosen])


def precompute_matches(
    truth: Truth, detections: Detections, max_detections: int, area: tuple[float, float] = EVERY_AREA
) -> Matches:
    """The matches of `detections` with the objects of `truth` whose `area` lies in the range; same images and classes."""
    assert truth.images == detections.images and truth.classes == detections.classes
    rows, keys = _counted(detections, len(truth.images), max_detections)
    aside = truth.ignore | ~within(truth.boxes_xyxy, area)
    found, ignored = _greedy(_pairs(truth, detections, rows, keys), keys, truth.ignore, aside)
    ignored |= ~found & ~within(detections.boxes_xyxy[rows], area)
    class_id, score, image_index = detections.class_id[rows], detections.score[rows], detections.image_index[rows]
    edges = np.searchsorted(class_id, np.arange(len(truth.classes) + 1))
    per_class = []
    for index, (first, last) in enumerate(pairwise(edges)):
        order = first + np.argsort(-score[first:last], kind="stable")
        own = truth.image_index[(truth.class_id == index) & ~aside]
        num_truth = np.bincount(own, minlength=len(truth.images)).astype(np.int32)
        images = image_index[order].astype(np.int64)
        per_class.append(ClassMatches(images, score[order], found[:, order], ignored[:, order], num_truth))
    return Matches(truth.classes, truth.images, tuple(per_class))


def _counted(detections: Detections, num_images: int, max_detections: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the detections that count, by class, image and falling score; and the key of each row's class and image."""
    rows = np.lexsort((-detections.score, detections.image_index, detections.class_id))
    keys = detections.class_id[rows].astype(np.int64) * num_images + detections.image_index[rows]
    counts = _place_in_run(keys) < max_detections
    return rows[counts], keys[counts]


def _place_in_run(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each element among the equal ones before it, for sorted keys: 0 for the first."""
    return np.arange(len(keys)) - np.searchsorted(keys, keys, side="left")


def _pairs(truth: Truth, detections: Detections, rows: NDArray[np.int64], keys: NDArray[np.int64]) -> _Pairs:
    """All pairs of one class and image that overlap enough; `detection` counts in `rows`, `truth` in the truth."""
    truth_keys = truth.class_id.astype(np.int64) * len(truth.images) + truth.image_index
    order = np.argsort(truth_keys, kind="stable")
    first, last = (np.searchsorted(truth_keys, keys, side=side, sorter=order) for side in ("left", "right"))
    boxes = np.ascontiguousarray(detections.boxes_xyxy[rows].astype(np.float64).T)
    others, crowd = np.ascontiguousarray(truth.boxes_xyxy[order].T), truth.ignore[order]
    parts = [_Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    for start, stop in _portions(last - first):
        number = (last - first)[start:stop]
        detection = np.repeat(np.arange(start, stop), number)
        object_ = np.arange(len(detection)) + np.repeat(first[start:stop] - (np.cumsum(number) - number), number)
        near = _share_a_side(boxes, others, detection, object_)
        detection, object_ = detection[near], object_[near]
        iou = _iou(boxes[:, detection], others[:, object_], crowd[object_])
        parts.append(_Pairs(detection, order[object_], iou).select(iou >= _LEAST_IOU[0]))
    detection, objects, iou = (np.concatenate([getattr(p, name) for p in parts]) for name in ("detection", "truth", "iou"))
    return _Pairs(detection, objects, iou)


def _share_a_side(
    boxes: NDArray[np.float64], others: NDArray[np.float64], detection: NDArray[np.int64], object_: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The pairs that can reach the lowest threshold: so much of the detection's width at least lies in the object's.

    Both of boxes_xyxy, (4, N) and (4, M). A little less is asked for, as a rounding must lose no pair.
    """
    left, right = boxes[0, detection], boxes[2, detection]
    needed = (right - left) * (0.99 * _LEAST_IOU[0])
    width = np.minimum(right, others[2, object_]) - np.maximum(left, others[0, object_])
    return np.flatnonzero(width >= needed)


def _portions(number: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of detections whose pairs, `number` each, are few enough to be held at once."""
    total, start = np.cumsum(number), 0
    while start < len(number):
        before = total[start - 1] if start else 0
        stop = max(int(np.searchsorted(total, before + _PAIRS_AT_ONCE, side="right")), start + 1)
        yield start, stop
        start = stop


def _iou(boxes: NDArray[np.float64], others: NDArray[np.float64], crowd: NDArray[np.bool_]) -> NDArray[np.float64]:
    """IoU (P,) of boxes_xyxy (4, P), pair by pair; with a crowd, the share of the box that lies in it."""
    shared = _area(np.maximum(boxes[:2], others[:2]), np.minimum(boxes[2:], others[2:]))
    area, other = (_area(corners[:2], corners[2:]) for corners in (boxes, others))
    whole = np.where(crowd, area, area + other - shared)
    ratio: NDArray[np.float64] = np.divide(shared, whole, out=np.zeros_like(shared), where=whole > 0)
    return ratio


def _area(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Area (P,) between corners (2, P), zero where they are the wrong way round."""
    sides = np.maximum(high - low, 0)
    area: NDArray[np.float64] = sides[0] * sides[1]
    return area


def _greedy(
    pairs: _Pairs, keys: NDArray[np.int64], crowd: NDArray[np.bool_], aside: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which detections (T, N) take an object, and which one that is `aside` (M,): it counts neither way.

    A round serves the next best detection of every image and class at once.
    """
    found, ignored = (np.zeros((len(_LEAST_IOU), len(keys)), np.bool_) for _ in range(2))
    taken = np.zeros((len(_LEAST_IOU), len(crowd)), np.bool_)
    contenders, number = np.unique(pairs.detection, return_counts=True)
    turn = np.repeat(_place_in_run(keys[contenders]), number)
    by_turn = np.argsort(turn, kind="stable")
    edges = np.searchsorted(turn[by_turn], np.arange(turn.max(initial=-1) + 2))
    for start, stop in pairwise(edges):
        served = pairs.select(by_turn[start:stop])
        threshold, detection, truth = _serve(served, taken, aside)
        counts = ~aside[truth]
        found[threshold[counts], detection[counts]] = True
        ignored[threshold[~counts], detection[~counts]] = True
        once = ~crowd[truth]
        taken[threshold[once], truth[once]] = True
    return found, ignored


def _serve(pairs: _Pairs, taken: NDArray[np.bool_], aside: NDArray[np.bool_]) -> tuple[NDArray[np.int64], ...]:
    """What each detection of `pairs` takes: threshold, detection and object (K,); no two detections share an object."""
    served, starts = np.unique(pairs.detection, return_index=True)
    number = np.diff(starts, append=len(pairs.iou))
    free = (pairs.iou >= _LEAST_IOU) & ~taken[:, pairs.truth]
    counts = ~aside[pairs.truth]
    if not counts.all():  # an object that counts is taken before any that does not, however much closer that is
        free &= counts | ~np.repeat(np.logical_or.reduceat(free & counts, starts, axis=1), number, axis=1)
    value = np.where(free, pairs.iou, -1.0)
    best = np.repeat(np.maximum.reduceat(value, starts, axis=1), number, axis=1)
    place = np.where(free & (value == best), np.arange(len(pairs.iou)), -1)
    choice = np.maximum.reduceat(place, starts, axis=1)
    threshold, column = np.nonzero(choice >= 0)
    return threshold, served[column], pairs.truth[choice[threshold, column]]
