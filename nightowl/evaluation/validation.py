"""A model's figures on val during training: the evaluator's own numbers, cheap enough for every epoch.

AP comes from the same matches that the gate resamples, equal to the records' to 1e-9; a second for 5,000 images and 80 classes.
"""

import numpy as np

from nightowl.evaluation.bootstrap import weighted_average_precision
from nightowl.evaluation.check import check_measurable
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.matches import Matches, precompute_matches
from nightowl.evaluation.metrics import Unit
from nightowl.evaluation.operating import BestF1, best_f1
from nightowl.evaluation.truth import Truth
from nightowl.records import Record


class Validation(Record):
    """`precision` and `recall` over all objects at the confidence of best F1, IoU 0.5; None where nothing was found at all."""

    num_images: int
    num_truth: int
    map50: Unit
    map50_95: Unit
    precision: Unit | None
    recall: Unit
    confidence: Unit | None


def validate(truth: Truth, detections: Detections, max_detections: int, split: str = "val") -> Validation:
    """Figures of detections against truth with the same images and classes; means are over the classes that have truth.

    Raises:
        DataError: when there are no images or no truth in them.
        StageFailed: when a score or a box is NaN or infinite; the image is named.
    """
    check_measurable(truth, detections, split)
    matches = precompute_matches(truth, detections, max_detections)
    average = weighted_average_precision(matches, np.ones((1, len(truth.images)), np.int32))[0]
    occurring = average[:, ~np.isnan(average[0])]
    best = best_overall(matches)
    return Validation(
        num_images=len(truth.images),
        num_truth=int(truth.counts().sum()),
        map50=_unit(occurring[0].mean()),
        map50_95=_unit(occurring.mean()),
        precision=best.precision,
        recall=best.recall,
        confidence=best.confidence,
    )


def best_overall(matches: Matches) -> BestF1:
    """The best F1 at IoU 0.5 over the objects of all classes together; some class must have truth."""
    score = np.concatenate([one.score[~one.ignored[0]] for one in matches.per_class])
    found = np.concatenate([one.found[0][~one.ignored[0]] for one in matches.per_class])
    return best_f1(score, found, sum(int(one.num_truth.sum()) for one in matches.per_class))


def _unit(value: np.floating) -> float:
    return float(np.clip(value, 0, 1))
