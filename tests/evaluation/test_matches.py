"""The matches give back COCO's average precision, whatever the crowds, ties and limits."""

import numpy as np
import pytest
from numpy.typing import NDArray

from nightowl.evaluation.average_precision import average_precision
from nightowl.evaluation.bootstrap import weighted_average_precision
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.matches import IOU_THRESHOLDS, precompute_matches
from nightowl.evaluation.sizes import AREAS, SIZES, Size
from nightowl.evaluation.truth import FALSE_ALARM, IGNORED, Truth, match, overlaps, truth_of
from tests.evaluation.scenes import CLASSES, a_scene
from tests.evaluation.test_average_precision import by_pycocotools, scored_by_pycocotools


def plain(truth: Truth, detections: Detections, max_detections: int = 100) -> NDArray[np.float64]:
    """AP (T, C) with every image counted once."""
    matches = precompute_matches(truth, detections, max_detections)
    return weighted_average_precision(matches, np.ones((1, len(truth.images)), np.int32))[0]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("max_detections", "why"), [(100, "as COCO"), (2, "more found than counts")])
def test_average_precision_from_matches_equals_pycocotools(seed: int, max_detections: int, why: str) -> None:
    images, detections = a_scene(seed, num_images=30)
    truth = truth_of(CLASSES, images)
    expected = by_pycocotools(truth, detections, max_detections).mean(axis=1)
    assert np.allclose(plain(truth, detections, max_detections), expected, atol=1e-9, equal_nan=True), why


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", range(6))
def test_average_precision_of_one_size_equals_pycocotools(size: Size, seed: int) -> None:
    images, detections = a_scene(seed, num_images=30, scale=1 + seed % 4)
    truth = truth_of(CLASSES, images)
    expected = scored_by_pycocotools(truth, detections, [100])[0][..., 1 + SIZES.index(size)].mean(axis=1)
    matches = precompute_matches(truth, detections, 100, AREAS[size])
    ours = weighted_average_precision(matches, np.ones((1, len(truth.images)), np.int32))[0]
    assert np.allclose(ours, expected, atol=1e-9, equal_nan=True)


def test_it_equals_the_evaluator_on_many_images() -> None:
    images, detections = a_scene(99, num_images=400)
    truth = truth_of(CLASSES, images)
    expected = average_precision(truth, detections, 100).precision[..., 0].mean(axis=1)
    assert np.allclose(plain(truth, detections), expected, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("seed", range(4))
def test_each_detection_is_matched_as_the_matching_of_one_threshold_does(seed: int) -> None:
    images, detections = a_scene(seed, num_images=20)
    truth = truth_of(CLASSES, images)
    matches = precompute_matches(truth, detections, 100)
    for row, iou in enumerate(IOU_THRESHOLDS):
        matched = match(truth, detections, iou)
        for index, one in enumerate(matches.per_class):
            own = matched[detections.class_id == index]
            assert one.found[row].sum() == (own >= 0).sum()
            assert one.ignored[row].sum() == (own == IGNORED).sum()
            assert (~one.found[row] & ~one.ignored[row]).sum() == (own == FALSE_ALARM).sum()


def test_few_pairs_at_once_give_the_same_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    images, detections = a_scene(5, num_images=20)
    truth = truth_of(CLASSES, images)
    whole = plain(truth, detections)
    monkeypatch.setattr("nightowl.evaluation.matches._PAIRS_AT_ONCE", 3)
    assert np.array_equal(plain(truth, detections), whole, equal_nan=True)


def test_truth_is_counted_an_image_and_class_without_crowds() -> None:
    images, detections = a_scene(7)
    truth = truth_of(CLASSES, images)
    per_class = precompute_matches(truth, detections, 100).per_class
    assert [int(one.num_truth.sum()) for one in per_class] == truth.counts().tolist()


def test_without_detections_where_there_is_truth_average_precision_is_zero_and_without_truth_unknown() -> None:
    images, detections = a_scene(1)
    none = detections.from_confidence(2.0)
    assert plain(truth_of(CLASSES, images), none)[0].tolist()[:3] == [0, 0, 0]
    assert np.isnan(plain(truth_of(CLASSES, images), detections)[:, 3]).all()


@pytest.mark.parametrize("seed", range(4))
def test_no_pair_is_lost_however_a_box_lies_in_an_object_or_a_crowd(seed: int) -> None:
    """Pairs are sifted by the width that they share before their overlap is worked out: half a width is still enough."""
    random = np.random.default_rng(seed)
    whole = np.array([0.0, 0.0, 64.0, 64.0])
    sides = random.choice([32.0, 33.0, 64.0, 128.0], (400, 2))
    boxes = np.concatenate([np.zeros((400, 2)), sides], axis=1)
    boxes[:, 0::2] += random.choice([-32.0, 0.0, 16.0, 32.0], 400)[:, None]
    images = tuple(f"{index}.png" for index in range(400))
    crowd = random.random(400) < 0.3
    place, zero = np.arange(400, dtype=np.int32), np.zeros(400, np.int32)
    truth = Truth(("a",), images, place, zero, np.tile(whole, (400, 1)), crowd)
    detections = Detections(("a",), images, place, zero, np.ones(400, np.float32), boxes.astype(np.float32))
    one = precompute_matches(truth, detections, 100).per_class[0]
    reached = np.array([overlaps(boxes[i : i + 1], whole[None], crowd[i : i + 1])[0, 0] for i in range(400)]) >= 0.5
    assert np.array_equal((one.found | one.ignored)[0], reached[one.image_index])
    assert np.any(reached) and np.any(~reached) and np.any(reached & crowd)
