"""Average precision under many resamples of the images, without evaluating again: a resample gives every image a whole
weight, and precision and recall are weighted cumulative counts of matches that were made once.

Two models are always held against each other on the same resamples, so that a hard image drawn often is hard for both. Where
images of a lot resemble each other, whole groups are drawn. The same seed gives the same resamples.

R resamples, B of them at once, I images, T IoU thresholds, C classes, N detections, K of them that find an object.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.matches import IOU_THRESHOLDS, ClassMatches, Matches

Weights = NDArray[np.int32]

_RECALL_POINTS = np.linspace(0, 1, 101)
_MOST_THREADS = 8
_CELLS_AT_ONCE = 500_000  # rows times resamples of one class: what a processor's cache holds


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """Candidate and champion on the same images: AP (T, C) of each, and candidate less champion (R, T, C) resample by resample.

    NaN where a class has no truth, in the images or in a resample of them.
    """

    classes: tuple[str, ...]
    candidate: NDArray[np.float64]
    champion: NDArray[np.float64]
    differences: NDArray[np.float64]

    def of_mean(self) -> NDArray[np.float64]:
        """Differences (R,) of mAP50-95 over the classes that occur in each resample; resamples without any are left out."""
        per_class = self.differences.mean(axis=1)
        occurs = ~np.isnan(per_class)
        some = occurs.any(axis=1)
        mean: NDArray[np.float64] = np.where(occurs, per_class, 0)[some].sum(axis=1) / occurs[some].sum(axis=1)
        return mean

    def of_class_at_50(self, index: int) -> NDArray[np.float64]:
        """Differences of one class's AP50, over the resamples in which it occurs."""
        all_of_it = self.differences[:, 0, index]
        return all_of_it[~np.isnan(all_of_it)]


def group_index(keys: Sequence[str]) -> NDArray[np.int64]:
    """A number (I,) for the group of each image, equal where the keys are."""
    return np.unique(np.array(keys, dtype=np.str_), return_inverse=True)[1].astype(np.int64)


def draw_weights(groups: NDArray[np.int64], num_resamples: int, seed: int) -> Weights:
    """How often each image (R, I) is drawn when as many groups as there are are drawn with replacement.

    `groups` (I,) numbers the groups from 0; `np.arange(I)` makes each image its own.
    """
    num_groups = int(groups.max(initial=-1)) + 1
    if not num_groups:
        return np.zeros((num_resamples, 0), np.int32)
    draws = np.random.default_rng(seed).integers(num_groups, size=(num_resamples, num_groups))
    draws += np.arange(num_resamples)[:, None] * num_groups
    counts = np.bincount(draws.ravel(), minlength=num_resamples * num_groups).astype(np.int32)
    return counts.reshape(num_resamples, num_groups)[:, groups]


def compare(candidate: Matches, champion: Matches, weights: Weights) -> Paired:
    """Both models on the images, and on the same resamples of them, `weights` (R, I)."""
    assert candidate.images == champion.images and candidate.classes == champion.classes
    once = np.ones((1, len(candidate.images)), np.int32)
    return Paired(
        candidate.classes,
        weighted_average_precision(candidate, once)[0],
        weighted_average_precision(champion, once)[0],
        weighted_average_precision(candidate, weights) - weighted_average_precision(champion, weights),
    )


def weighted_average_precision(matches: Matches, weights: Weights) -> NDArray[np.float64]:
    """AP (R, T, C) by COCO's 101 recall points when images count as often as `weights` (R, I) says; NaN without truth."""
    assert weights.shape[1] == len(matches.images)
    columns = np.ascontiguousarray(weights.T)
    num_thresholds = len(matches.per_class[0].found) if matches.per_class else len(IOU_THRESHOLDS)
    result = np.empty((len(weights), num_thresholds, len(matches.classes)))

    def fill(index: int) -> None:
        one = matches.per_class[index]
        at_once = min(max(_CELLS_AT_ONCE // max(len(one.image_index), 1), 16), 256)
        for start in range(0, len(weights), at_once):
            part = slice(start, start + at_once)
            result[part, :, index] = _class_precision(one, columns[:, part]).T

    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:  # numpy works outside the interpreter's lock
        list(threads.map(fill, range(len(matches.per_class))))
    return result


def _class_precision(one: ClassMatches, weights: Weights) -> NDArray[np.float64]:
    """AP (T, B) of one class under weights (I, B)."""
    result = np.zeros((len(one.found), weights.shape[1]))
    num_truth = one.num_truth @ weights
    finders = np.flatnonzero(one.found.any(axis=0))
    drawn = weights[one.image_index[finders]]
    seen = _running_totals(weights[one.image_index], finders)
    for index, (found, ignored) in enumerate(zip(one.found, one.ignored, strict=True)):
        chosen = found[finders]
        hits = np.cumsum(drawn[chosen], axis=0, dtype=np.int32)
        counted = seen[chosen] - _ignored_before(one, weights, ignored, finders[chosen])
        result[index] = _interpolated(hits, counted, num_truth)
    result[:, num_truth == 0] = np.nan
    return result


def _running_totals(drawn: Weights, finders: NDArray[np.int64]) -> Weights:
    """The weights (N, B) summed down to each finder (K, B), itself included; rows between two finders are only ever summed."""
    if not len(finders):
        return drawn[:0]
    starts = np.concatenate([[0], finders[:-1] + 1])
    sums: Weights = np.add.reduceat(drawn[: finders[-1] + 1], starts, axis=0)
    return np.cumsum(sums, axis=0, dtype=np.int32)


def _ignored_before(one: ClassMatches, weights: Weights, ignored: NDArray[np.bool_], finders: NDArray[np.int64]) -> Weights:
    """What detections that do not count weigh (K, B) above each finder."""
    rows = np.flatnonzero(ignored)
    if not len(rows):
        return np.zeros((1, 1), np.int32)
    totals = np.cumsum(weights[one.image_index[rows]], axis=0, dtype=np.int32)
    return np.concatenate([np.zeros_like(totals[:1]), totals])[np.searchsorted(rows, finders)]


def _interpolated(found: NDArray[np.int32], seen: NDArray[np.int32], num_truth: NDArray[np.integer]) -> NDArray[np.float64]:
    """AP (B,) from running counts (K, B): at each recall point, the best precision from there on.

    Precision only falls between two finders, so that theirs is all that matters.
    """
    precision = found / np.maximum(seen, 1)
    best = np.maximum.accumulate(precision[::-1], axis=0)[::-1]
    reached = np.diff(_points_reached(found / np.maximum(num_truth, 1)), axis=0, prepend=0)
    average: NDArray[np.float64] = np.einsum("kb,kb->b", best, reached) / len(_RECALL_POINTS)
    return average


def _points_reached(recall: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many recall points are not above `recall`, compared as COCO does (0.35 lies below its point 0.35000000000000003)."""
    nearest = np.rint(recall * (len(_RECALL_POINTS) - 1)).astype(np.int64)
    return nearest + (_RECALL_POINTS[nearest] <= recall)
