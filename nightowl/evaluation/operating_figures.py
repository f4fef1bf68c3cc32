"""What a model would do on the line, measured on test at its operating point: misses, false positives, escapes and overkill.

An image whose only objects are crowds is neither good nor faulty and is left out of escapes and overkill; detections in a crowd
count neither way. I images, C classes.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.bootstrap import draw_weights
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.matches import Matches, precompute_matches
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.rates import Rate, Resampled, count_per, share_of
from nightowl.evaluation.truth import Truth
from nightowl.params import OperatingLimits
from nightowl.records import Record

_SEED = 0  # the same data give the same intervals
_NO_LIMITS = OperatingLimits()


class Figures(Record):
    """Rates of one class, or of all together (`name` None), from `confidence` up.

    `miss`: objects not found. `false_positives`: an image. `escape`: of the images with an object, those on which nothing is
    detected. `overkill`: of the images without one, those on which something is. Of a class: objects and detections of it.
    """

    name: str | None
    confidence: float | None
    miss: Rate
    false_positives: Rate
    escape: Rate
    overkill: Rate


class OperatingFigures(Record):
    """Figures on `num_images` of `split`, at IoU 0.5, from `num_independent` images or groups of them."""

    split: str
    num_images: int
    num_independent: int
    confidence: float
    overall: Figures
    classes: tuple[Figures, ...]


class _Counts(NamedTuple):
    """Of each image, (I,): objects, those found, detections, those that are false; and whether it holds crowds."""

    objects: NDArray[np.int64]
    found: NDArray[np.int64]
    shown: NDArray[np.int64]
    false: NDArray[np.int64]
    crowded: NDArray[np.bool_]


def operating_figures(
    truth: Truth,
    detections: Detections,
    point: OperatingPoint,
    groups: NDArray[np.int64],
    confidence: float,
    num_resamples: int,
    split: str = "test",
    class_limits: Mapping[str, OperatingLimits] | None = None,
) -> OperatingFigures | None:
    """Every rate at the thresholds of `point`, whose classes are those of `truth`; None when it has no threshold at all.

    `groups` (I,) numbers the images that belong together; bounds are one-sided with `confidence`. A class in `class_limits`
    is also tested against them.
    """
    thresholds = point.thresholds()
    if thresholds is None:
        return None
    resampled = Resampled(draw_weights(groups, num_resamples, _SEED).astype(np.float64), groups)
    matches = precompute_matches(truth, detections.from_confidence(thresholds), max_detections=len(detections) + 1)
    classes = [_counts(truth, matches, index) for index in range(len(truth.classes))]
    return OperatingFigures(
        split=split,
        num_images=len(truth.images),
        num_independent=len(np.unique(groups)),
        confidence=confidence,
        overall=_figures(None, point.overall, _together(classes), resampled, confidence),
        classes=tuple(
            _figures(name, float(threshold), counts, resampled, confidence, (class_limits or {}).get(name, _NO_LIMITS))
            for name, threshold, counts in zip(truth.classes, thresholds, classes, strict=True)
        ),
    )


def _figures(
    name: str | None,
    threshold: float | None,
    counts: _Counts,
    resampled: Resampled,
    confidence: float,
    limits: OperatingLimits = _NO_LIMITS,
) -> Figures:
    faulty, good = counts.objects > 0, (counts.objects == 0) & ~counts.crowded
    nothing = counts.shown == 0
    every = np.ones(len(faulty), np.int64)
    return Figures(
        name=name,
        confidence=threshold,
        miss=share_of(counts.objects - counts.found, counts.objects, resampled, confidence, limits.max_miss_rate),
        false_positives=count_per(counts.false, every, resampled, confidence, limits.max_fp_per_image),
        escape=share_of(_number(faulty & nothing), _number(faulty), resampled, confidence, limits.max_escape_rate),
        overkill=share_of(_number(good & ~nothing), _number(good), resampled, confidence, limits.max_overkill_rate),
    )


def _number(which: NDArray[np.bool_]) -> NDArray[np.int64]:
    return which.astype(np.int64)


def _counts(truth: Truth, matches: Matches, index: int) -> _Counts:
    one, num_images = matches.per_class[index], len(truth.images)
    found, ignored = one.found[0], one.ignored[0]

    def an_image(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(one.image_index[chosen], minlength=num_images)

    crowds = truth.image_index[truth.ignore & (truth.class_id == index)]
    crowded = np.bincount(crowds, minlength=num_images) > 0
    objects = one.num_truth.astype(np.int64)
    return _Counts(objects, an_image(found), an_image(np.ones_like(found)), an_image(~found & ~ignored), crowded)


def _together(classes: Sequence[_Counts]) -> _Counts:
    objects, found, shown, false = (np.sum([counts[place] for counts in classes], axis=0) for place in range(4))
    return _Counts(objects, found, shown, false, np.any([counts.crowded for counts in classes], axis=0))
