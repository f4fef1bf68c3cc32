"""The evaluator's figures, and what it refuses to measure."""

from dataclasses import replace

import numpy as np
import pytest

from nightowl.errors import DataError, StageFailed
from nightowl.evaluation.choose_operating import choose_operating_point
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.evaluate import Measured, Subject, evaluate
from nightowl.evaluation.truth import FALSE_ALARM, IGNORED, Truth, match, truth_of
from nightowl.params import OperatingParams
from tests.evaluation.scenes import CLASSES, a_scene

SUBJECT = Subject("candidate", "0" * 64, "1" * 64, "test", 0.01)


def measure(truth: Truth, detections: Detections) -> Measured:
    return evaluate(truth, detections, SUBJECT, max_detections=300, confusion_confidence=0.5)


def test_the_means_are_over_the_classes_that_have_truth() -> None:
    images, detections = a_scene(0)
    metrics = measure(truth_of(CLASSES, images), detections).metrics
    known = [c.ap50_95 for c in metrics.classes if c.ap50_95 is not None]
    assert len(known) == 3
    assert metrics.map50_95 == pytest.approx(np.mean(known))
    assert metrics.map50_95 < metrics.map50
    assert metrics.num_truth == sum(c.num_truth for c in metrics.classes)


def test_a_class_without_truth_has_no_figures_and_no_curve() -> None:
    images, detections = a_scene(0)
    measured = measure(truth_of(CLASSES, images), detections)
    never = measured.metrics.classes[3]
    assert (never.num_truth, never.ap50, never.ap50_95, never.precision, never.recall) == (0, None, None, None, None)
    assert measured.curves.precision[3] is None
    assert [len(row) for row in measured.curves.precision if row] == [101] * 3


def test_precision_and_recall_are_those_at_the_reported_threshold() -> None:
    images, detections = a_scene(3)
    truth = truth_of(CLASSES, images)
    for class_id, figures in enumerate(measure(truth, detections).metrics.classes[:3]):
        shown = detections.from_confidence(figures.best_f1_confidence)
        matched = match(truth, shown)[shown.class_id == class_id]
        right, wrong = (matched >= 0).sum(), (matched == FALSE_ALARM).sum()
        assert figures.precision == pytest.approx(right / (right + wrong))
        assert figures.recall == pytest.approx(right / figures.num_truth)


def test_no_detections_measure_as_zero_without_a_threshold() -> None:
    images, detections = a_scene(0)
    metrics = measure(truth_of(CLASSES, images), detections.from_confidence(2.0)).metrics
    assert (metrics.map50, metrics.map75, metrics.map50_95) == (0, 0, 0)
    assert metrics.classes[0].recall == 0
    assert (metrics.classes[0].precision, metrics.classes[0].best_f1_confidence) == (None, None)


def test_without_images_nothing_is_measured() -> None:
    none = np.zeros(0, np.int32)
    detections = Detections(CLASSES, (), none, none, np.zeros(0, np.float32), np.zeros((0, 4), np.float32))
    with pytest.raises(DataError, match=r"^test: no images"):
        measure(truth_of(CLASSES, ()), detections)


def test_without_truth_nothing_is_measured() -> None:
    images, detections = a_scene(0)
    with pytest.raises(DataError, match="12 images without a single labelled object"):
        measure(truth_of(CLASSES, [replace(image, boxes=()) for image in images]), detections)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_score_that_is_no_number_names_its_image(value: float) -> None:
    images, detections = a_scene(0)
    detections.score[-1] = value
    with pytest.raises(StageFailed, match=detections.images[detections.image_index[-1]]):
        measure(truth_of(CLASSES, images), detections)


def test_the_operating_point_is_the_best_of_all_thresholds() -> None:
    images, detections = a_scene(5)
    truth = truth_of(CLASSES, images)
    chosen = choose_operating_point(truth, detections, "1" * 64, OperatingParams())

    def f1(confidence: float) -> float:
        matched = match(truth, detections.from_confidence(confidence))
        counted = (matched != IGNORED).sum()
        return float(2 * (matched >= 0).sum() / (counted + truth.counts().sum()))

    assert chosen.overall is not None
    assert f1(chosen.overall) == pytest.approx(max(f1(score) for score in np.unique(detections.score)))
    assert [c.confidence is None for c in chosen.classes] == [False, False, False, True]
