"""The figures of an epoch are the evaluator's own."""

from dataclasses import replace

import numpy as np
import pytest

from nightowl.errors import DataError, StageFailed
from nightowl.evaluation.choose_operating import choose_operating_point
from nightowl.evaluation.truth import FALSE_ALARM, match, truth_of
from nightowl.evaluation.validation import validate
from nightowl.params import OperatingParams
from tests.evaluation.scenes import CLASSES, a_scene
from tests.evaluation.test_evaluate import measure


@pytest.mark.parametrize("seed", range(4))
def test_an_epochs_figures_equal_those_of_the_record(seed: int) -> None:
    images, detections = a_scene(seed, num_images=30)
    truth = truth_of(CLASSES, images)
    ours, record = validate(truth, detections, 300), measure(truth, detections).metrics
    assert (ours.map50, ours.map50_95) == pytest.approx((record.map50, record.map50_95), abs=1e-9)
    assert (ours.num_images, ours.num_truth) == (record.num_images, record.num_truth)


def test_precision_and_recall_are_those_at_the_confidence_of_best_f1() -> None:
    images, detections = a_scene(2, num_images=30)
    truth = truth_of(CLASSES, images)
    ours = validate(truth, detections, 300)
    assert ours.confidence == choose_operating_point(truth, detections, "1" * 64, OperatingParams()).overall
    matched = match(truth, detections.from_confidence(ours.confidence or 2))
    right, wrong = (matched >= 0).sum(), (matched == FALSE_ALARM).sum()
    assert (ours.precision, ours.recall) == pytest.approx((right / (right + wrong), right / ours.num_truth))


def test_nothing_found_where_there_is_truth_is_a_measured_zero_without_a_precision() -> None:
    images, detections = a_scene(0)
    ours = validate(truth_of(CLASSES, images), detections.from_confidence(2.0), 300)
    assert (ours.map50, ours.map50_95, ours.recall) == (0, 0, 0)
    assert (ours.precision, ours.confidence) == (None, None)


def test_what_cannot_be_measured_raises_and_is_never_zero() -> None:
    images, detections = a_scene(0)
    empty = [replace(image, boxes=()) for image in images]
    with pytest.raises(DataError, match="val: 12 images without a single labelled object"):
        validate(truth_of(CLASSES, empty), detections, 300)
    detections.score[0] = np.nan
    with pytest.raises(StageFailed, match=r"\.png: a detection has score nan"):
        validate(truth_of(CLASSES, images), detections, 300)


def test_images_that_only_one_side_has_are_named_and_not_counted_as_misses() -> None:
    images, detections = a_scene(0)
    with pytest.raises(DataError, match=r"1 images were looked at but are not labelled, first 011\.png"):
        validate(truth_of(CLASSES, images[:-1]), detections, 300)
    seen = replace(detections.select(detections.image_index < 11), images=detections.images[:-1])
    with pytest.raises(DataError, match=r"1 images have labels but were never looked at, first 011\.png"):
        validate(truth_of(CLASSES, images), seen, 300)
    with pytest.raises(DataError, match="in another order"):
        validate(truth_of(CLASSES, images), replace(detections, images=detections.images[::-1]), 300)
