"""From where a detection counts."""

import numpy as np
import pytest

from nightowl.evaluation.operating import ClassThreshold, OperatingPoint, best_f1


@pytest.mark.parametrize(
    ("score", "correct", "truth", "confidence", "why"),
    [
        ([0.9, 0.8, 0.3], [1, 1, 0], 2, 0.55, "halfway between the last right one and the first wrong one"),
        ([0.9, 0.5], [1, 1], 2, 0.5, "nothing lies lower: the lowest itself"),
        ([0.9, 0.7, 0.7], [1, 0, 1], 2, 0.7, "equal scores come in together"),
        ([0.9, 0.8, 0.7, 0.6], [1, 0, 0, 1], 2, 0.85, "of equal F1 the highest threshold"),
        ([0.9], [0], 2, None, "nothing right"),
        ([], [], 2, None, "nothing found"),
    ],
)
def test_the_threshold_of_best_f1(
    score: list[float], correct: list[int], truth: int, confidence: float | None, why: str
) -> None:
    point = best_f1(np.array(score, np.float32), np.array(correct, np.bool_), truth)
    assert point.confidence == (confidence if confidence is None else pytest.approx(confidence)), why


def test_a_class_without_a_threshold_uses_the_overall_one() -> None:
    classes = (ClassThreshold(name="a", confidence=0.7), ClassThreshold(name="b", confidence=None))
    point = OperatingPoint(split="val", dataset_version="x", overall=0.4, classes=classes)
    thresholds = point.thresholds()
    assert thresholds is not None
    assert thresholds.tolist() == pytest.approx([0.7, 0.4])


def test_without_an_overall_threshold_there_is_none() -> None:
    assert OperatingPoint(split="val", dataset_version="x", overall=None, classes=()).thresholds() is None
