"""Chooses a model's operating point from its detections on val, by the rule in params."""

import numpy as np
from numpy.typing import NDArray

from nightowl.errors import DataError
from nightowl.evaluation.check import check_measurable
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.matches import Matches, precompute_matches
from nightowl.evaluation.operating import ClassThreshold, OperatingPoint, choose, rule_in_words
from nightowl.evaluation.truth import Truth
from nightowl.params import OperatingParams


def choose_operating_point(
    truth: Truth, detections: Detections, dataset_version: str, params: OperatingParams, split: str = "val"
) -> OperatingPoint:
    """The thresholds a class and over all, with which the rule holds on these images.

    `max_fp_per_image` is for an image as a whole: each class gets an equal share of it, unless it has a rule of its own.

    Raises:
        DataError: when there are no images or no truth, or params name a class that there is not.
        StageFailed: when a score or a box is NaN or infinite; the image is named.
    """
    check_measurable(truth, detections, split)
    unknown = [name for name in params.classes if name not in truth.classes]
    if unknown:
        raise DataError(
            f"params evaluate.operating_point.classes: no class {', '.join(unknown)}; there are {', '.join(truth.classes)}"
        )
    matches = precompute_matches(truth, detections, max_detections=len(detections) + 1)
    overall = choose(params, *_all_classes(matches), len(truth.images))
    return OperatingPoint(
        rule=rule_in_words(params),
        split=split,
        dataset_version=dataset_version,
        overall=overall.confidence,
        classes=tuple(_of_class(matches, index, params) for index in range(len(truth.classes))),
        met=overall.met,
    )


def _of_class(matches: Matches, index: int, params: OperatingParams) -> ClassThreshold:
    name, one = matches.classes[index], matches.per_class[index]
    own = params.classes.get(name)
    words = rule_in_words(own) if own else None
    num_truth, num_images = int(one.num_truth.sum()), len(matches.images)
    if not num_truth and (own or params).rule != "max_fp_per_image":  # which needs no truth: every detection is false
        return ClassThreshold(name=name, confidence=None, rule=words, met=False)
    counts = ~one.ignored[0]
    share = num_images if own else num_images / len(matches.classes)
    chosen = choose(own or params, one.score[counts], one.found[0][counts], num_truth, share)
    return ClassThreshold(name=name, confidence=chosen.confidence, rule=words, met=chosen.met)


def _all_classes(matches: Matches) -> tuple[NDArray[np.float32], NDArray[np.bool_], int]:
    """Scores and whether they are right, (N,), of all classes, and the number of objects."""
    score = np.concatenate([one.score[~one.ignored[0]] for one in matches.per_class])
    found = np.concatenate([one.found[0][~one.ignored[0]] for one in matches.per_class])
    return score, found, sum(int(one.num_truth.sum()) for one in matches.per_class)
