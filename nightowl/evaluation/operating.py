"""The operating point: the confidence from which a detection counts in use, chosen on val and stored with the model.

The rule is the best F1 at IoU 0.5, a class and over all. A class whose threshold could not be chosen (no truth in val, or
nothing found) uses the overall one; where there is none either, whoever runs the model has to name a confidence.
"""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nightowl.evaluation.metrics import Unit
from nightowl.records import Record


class ClassThreshold(Record):
    name: str
    confidence: Unit | None


class OperatingPoint(Record):
    """Thresholds by `rule`, measured on `split` of a dataset version; a detection counts from its threshold up."""

    rule: str = "best F1 at IoU 0.5"
    split: str
    dataset_version: str
    overall: Unit | None
    classes: tuple[ClassThreshold, ...]

    def among(self, names: tuple[str, ...]) -> "OperatingPoint":
        """The same point for those of its classes, in the order of `names`, which it must all have."""
        own = {each.name: each for each in self.classes}
        return self.model_copy(update={"classes": tuple(own[name] for name in names)})

    def thresholds(self) -> NDArray[np.float32] | None:
        """The threshold a class, in order; None when the model has none."""
        if self.overall is None:
            return None
        return np.array([self.overall if c.confidence is None else c.confidence for c in self.classes], np.float32)


class BestF1(Record):
    """The threshold of best F1 and what it gives; nothing found, or nothing right, has no threshold."""

    confidence: Unit | None
    precision: Unit | None = Field(description="None when nothing was found at all")
    recall: Unit


def best_f1(score: NDArray[np.float32], correct: NDArray[np.bool_], num_truth: int) -> BestF1:
    """The threshold with the best F1 over detections (N,), ignored ones left out; `num_truth` > 0.

    It lies halfway to the next lower score, so that no detection sits on it and a rounding in another runtime flips none.
    Of equal F1 the highest threshold wins.
    """
    if len(score) == 0 or not correct.any():
        return BestF1(confidence=None, precision=0.0 if len(score) else None, recall=0.0)
    order = np.argsort(-score, kind="stable")
    sorted_score, hits = score[order].astype(np.float64), np.cumsum(correct[order])
    ends = np.flatnonzero(np.append(np.diff(sorted_score) < 0, True))  # equal scores come in or stay out together
    f1 = 2 * hits[ends] / (ends + 1 + num_truth)
    best = int(np.argmax(f1))
    at = ends[best]
    lower = sorted_score[at + 1] if at + 1 < len(score) else sorted_score[at]
    return BestF1(
        confidence=float((sorted_score[at] + lower) / 2),
        precision=float(hits[at] / (at + 1)),
        recall=float(hits[at] / num_truth),
    )
