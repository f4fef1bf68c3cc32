"""The operating point: the confidence from which a detection counts in use, chosen on val and stored with the model.

By a rule of params at IoU 0.5, a class and over all. A class whose threshold could not be chosen (no truth in val, or nothing
right) uses the overall one; where there is none either, whoever runs the model has to name a confidence. A threshold lies
halfway to the next lower score, so that no detection sits on it and a rounding in another runtime flips none.

N detections, those that lie in a crowd left out.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nightowl.evaluation.metrics import Unit
from nightowl.params import OperatingRule
from nightowl.records import Record

_ROUNDING = 1e-9  # 0.1 of 30 images is a little less than 3


class ClassThreshold(Record):
    """A class's own threshold; `rule` where it differs from the others', `met` False where val could not fulfil it."""

    name: str
    confidence: Unit | None
    rule: str | None = None
    met: bool = True


class OperatingPoint(Record):
    """Thresholds by `rule`, chosen on `split` of a dataset version; a detection counts from its threshold up."""

    rule: str = "best F1 at IoU 0.5"
    split: str
    dataset_version: str
    overall: Unit | None
    classes: tuple[ClassThreshold, ...]
    met: bool = True

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


class Chosen(NamedTuple):
    """A threshold, None where nothing right was found; `met` says whether it fulfils its rule on val."""

    confidence: float | None
    met: bool


class _Sweep(NamedTuple):
    """What each possible threshold (K,), highest first, lets through: how many detections, and how many of them right."""

    threshold: NDArray[np.float64]
    num_shown: NDArray[np.int64]
    num_right: NDArray[np.int64]


def best_f1(score: NDArray[np.float32], correct: NDArray[np.bool_], num_truth: int) -> BestF1:
    """The threshold with the best F1 over detections (N,); `num_truth` > 0. Of equal F1 the highest threshold wins."""
    if len(score) == 0 or not correct.any():
        return BestF1(confidence=None, precision=0.0 if len(score) else None, recall=0.0)
    sweep = _sweep(score, correct)
    best = int(np.argmax(2 * sweep.num_right / (sweep.num_shown + num_truth)))
    return BestF1(
        confidence=float(sweep.threshold[best]),
        precision=float(sweep.num_right[best] / sweep.num_shown[best]),
        recall=float(sweep.num_right[best] / num_truth),
    )


def least_recall(score: NDArray[np.float32], correct: NDArray[np.bool_], num_truth: int, recall: float) -> Chosen:
    """The highest threshold that finds this share of the objects; where none does, the highest that finds as many as any."""
    if not correct.any():
        return Chosen(None, False)
    sweep = _sweep(score, correct)
    met = int(sweep.num_right[-1]) >= recall * num_truth - _ROUNDING
    wanted = recall * num_truth - _ROUNDING if met else sweep.num_right[-1]
    return Chosen(float(sweep.threshold[int(np.argmax(sweep.num_right >= wanted))]), met)


def most_false_positives(score: NDArray[np.float32], correct: NDArray[np.bool_], num_allowed: float) -> Chosen:
    """The lowest threshold that lets through so many false positives at most; None where nothing was found at all.

    Where even the best detections are wrong, it lies above them all: then nothing is detected. Above a score of 1 there is no
    threshold, and then the rule is not met.
    """
    if not len(score):
        return Chosen(None, True)
    sweep = _sweep(score, correct)
    allowed = np.flatnonzero(sweep.num_shown - sweep.num_right <= num_allowed + _ROUNDING)
    if len(allowed):
        return Chosen(float(sweep.threshold[allowed[-1]]), True)
    above = np.nextafter(np.float32(score.max()), np.float32(2))
    return Chosen(float(max(above, (1 + score.max()) / 2)) if above <= 1 else 1.0, bool(above <= 1))


def choose(
    rule: OperatingRule, score: NDArray[np.float32], correct: NDArray[np.bool_], num_truth: int, num_images: float
) -> Chosen:
    """The threshold by `rule` over detections (N,); `num_truth` > 0; false positives may spread over `num_images`."""
    if rule.rule == "best_f1":
        best = best_f1(score, correct, num_truth).confidence
        return Chosen(best, best is not None)
    assert rule.value is not None, "params refuse such a rule without its value"
    if rule.rule == "min_recall":
        return least_recall(score, correct, num_truth, rule.value)
    return most_false_positives(score, correct, rule.value * num_images)


def rule_in_words(rule: OperatingRule) -> str:
    if rule.rule == "best_f1":
        return "best F1 at IoU 0.5"
    if rule.rule == "min_recall":
        return f"recall of at least {rule.value:g} at IoU 0.5"
    return f"at most {rule.value:g} false positives an image at IoU 0.5"


def _sweep(score: NDArray[np.float32], correct: NDArray[np.bool_]) -> _Sweep:
    """Equal scores come in or stay out together; between neighbours in single precision the threshold is the higher itself."""
    order = np.argsort(-score, kind="stable")
    ranked, hits = score[order].astype(np.float64), np.cumsum(correct[order], dtype=np.int64)
    ends = np.flatnonzero(np.append(np.diff(ranked) < 0, True))
    lower = ranked[np.minimum(ends + 1, len(ranked) - 1)]
    middle = (ranked[ends] + lower) / 2
    threshold = np.where(middle.astype(np.float32) > lower, middle, ranked[ends])
    return _Sweep(threshold, ends + 1, hits[ends])
