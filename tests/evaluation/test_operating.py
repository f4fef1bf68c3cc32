"""From where a detection counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightowl.errors import DataError
from nightowl.evaluation.choose_operating import choose_operating_point
from nightowl.evaluation.operating import (
    ClassThreshold,
    OperatingPoint,
    best_f1,
    least_recall,
    most_false_positives,
)
from nightowl.evaluation.truth import FALSE_ALARM, match, truth_of
from nightowl.params import OperatingParams, OperatingRule
from tests.evaluation.scenes import CLASSES, a_scene


def scored(score: list[float], correct: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(score, np.float32), np.array(correct, np.bool_)


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
    point = best_f1(*scored(score, correct), truth)
    assert point.confidence == (confidence if confidence is None else pytest.approx(confidence)), why


@pytest.mark.parametrize(
    ("score", "correct", "truth", "recall", "confidence", "met", "why"),
    [
        ([0.9, 0.8, 0.4, 0.3], [1, 0, 1, 1], 4, 0.5, 0.35, True, "the highest that finds two of four"),
        ([0.9, 0.8, 0.4], [1, 0, 1], 20, 0.1, 0.4, True, "a tenth of twenty is two, whatever the rounding"),
        ([0.9, 0.8, 0.4, 0.3], [1, 1, 0, 0], 4, 0.9, 0.6, False, "out of reach: as much as can be had, and no alarm more"),
        ([0.9], [0], 3, 0.5, None, False, "nothing right"),
        ([], [], 3, 0.5, None, False, "nothing found"),
    ],
)
def test_the_threshold_of_a_least_recall(
    score: list[float], correct: list[int], truth: int, recall: float, confidence: float | None, met: bool, why: str
) -> None:
    chosen = least_recall(*scored(score, correct), truth, recall)
    assert chosen == (confidence if confidence is None else pytest.approx(confidence), met), why


@pytest.mark.parametrize(
    ("score", "correct", "allowed", "confidence", "why"),
    [
        ([0.9, 0.8, 0.6, 0.5, 0.3], [1, 0, 1, 1, 0], 1, 0.4, "the lowest with one false positive"),
        ([0.9, 0.8, 0.6], [1, 1, 1], 0, 0.6, "none is false: all count"),
        ([0.9, 0.8], [0, 1], 0, 0.95, "the best is false: nothing may count"),
        ([0.9, 0.8, 0.8], [1, 0, 1], 0, 0.85, "equal scores come in together"),
        ([0.9, 0.8, 0.7], [1, 0, 0], 0, 0.85, "all but the best are false"),
        ([], [], 1, None, "nothing found"),
    ],
)
def test_the_threshold_of_the_most_false_positives(
    score: list[float], correct: list[int], allowed: float, confidence: float | None, why: str
) -> None:
    chosen = most_false_positives(*scored(score, correct), allowed)
    assert chosen == (confidence if confidence is None else pytest.approx(confidence), True), why


def test_above_a_score_of_one_there_is_no_threshold() -> None:
    assert most_false_positives(*scored([1.0], [0]), 0) == (1.0, False)


def test_a_threshold_parts_even_neighbouring_scores() -> None:
    """Halfway between two neighbours in single precision rounds to one of them, and must not be the lower."""
    low = np.float32(0.7)
    high = np.nextafter(low, np.float32(1))
    chosen = most_false_positives(np.array([high, low], np.float32), np.array([True, False]), 0)
    assert chosen.confidence is not None and low < np.float32(chosen.confidence) <= high


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 500), recall=st.floats(0.05, 1), per_image=st.floats(0.01, 3))
def test_a_rule_holds_on_the_images_that_it_was_chosen_on(seed: int, recall: float, per_image: float) -> None:
    images, detections = a_scene(seed)
    truth = truth_of(CLASSES, images)
    if not truth.counts().sum():
        return
    by_recall = choose_operating_point(truth, detections, "1" * 64, OperatingParams(rule="min_recall", value=recall))
    for class_id, chosen in enumerate(by_recall.classes):
        if chosen.met and chosen.confidence is not None:
            matched = match(truth, detections.from_confidence(chosen.confidence))
            of_class = detections.from_confidence(chosen.confidence).class_id == class_id
            assert (matched[of_class] >= 0).sum() >= recall * truth.counts()[class_id] - 1e-9
    rule = OperatingParams(rule="max_fp_per_image", value=per_image)
    by_alarms = choose_operating_point(truth, detections, "1" * 64, rule)
    thresholds = by_alarms.thresholds()
    matched = match(truth, detections.from_confidence(2.0 if thresholds is None else thresholds))
    assert not all(c.met for c in by_alarms.classes) or (matched == FALSE_ALARM).sum() <= per_image * len(images) + 1e-9


def test_a_class_may_have_a_rule_of_its_own() -> None:
    images, detections = a_scene(5, num_images=30)
    truth = truth_of(CLASSES, images)
    own = OperatingParams(classes={"b": OperatingRule(rule="min_recall", value=0.3)})
    plain, changed = (choose_operating_point(truth, detections, "1" * 64, rule) for rule in (OperatingParams(), own))
    assert changed.rule == "best F1 at IoU 0.5"
    assert [c.rule for c in changed.classes] == [None, "recall of at least 0.3 at IoU 0.5", None, None]
    assert changed.classes[0].confidence == plain.classes[0].confidence
    assert changed.classes[1].confidence != plain.classes[1].confidence


def test_a_class_without_truth_on_val_has_no_threshold_of_its_own_and_its_rule_is_not_met() -> None:
    images, detections = a_scene(5)
    chosen = choose_operating_point(truth_of(CLASSES, images), detections, "1" * 64, OperatingParams())
    assert (chosen.classes[3].name, chosen.classes[3].confidence, chosen.classes[3].met) == ("never", None, False)


def test_a_rule_for_a_class_that_there_is_not_is_refused() -> None:
    images, detections = a_scene(5)
    rule = OperatingParams(classes={"d": OperatingRule()})
    with pytest.raises(DataError, match="no class d; there are a, b, c, never"):
        choose_operating_point(truth_of(CLASSES, images), detections, "1" * 64, rule)


def test_a_class_without_a_threshold_uses_the_overall_one() -> None:
    classes = (ClassThreshold(name="a", confidence=0.7), ClassThreshold(name="b", confidence=None))
    point = OperatingPoint(split="val", dataset_version="x", overall=0.4, classes=classes)
    thresholds = point.thresholds()
    assert thresholds is not None
    assert thresholds.tolist() == pytest.approx([0.7, 0.4])


def test_without_an_overall_threshold_there_is_none() -> None:
    assert OperatingPoint(split="val", dataset_version="x", overall=None, classes=()).thresholds() is None
