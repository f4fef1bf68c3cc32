"""Average precision equals pycocotools, crowds included."""

import contextlib
import io

import numpy as np
import pytest
from numpy.typing import NDArray
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from nightowl.evaluation.average_precision import average_precision
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.sizes import AREAS, SIZES, within
from nightowl.evaluation.truth import Truth, truth_of
from tests.evaluation.scenes import CLASSES, a_scene


def by_pycocotools(truth: Truth, detections: Detections, max_detections: int) -> NDArray[np.float64]:
    """Precision (T, R, C), NaN without truth, by the reference implementation."""
    return scored_by_pycocotools(truth, detections, [max_detections])[0][..., 0]


def scored_by_pycocotools(
    truth: Truth, detections: Detections, limits: list[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Precision (T, R, C, A) at the last of `limits` and recall (T, C, A, M), NaN without truth."""

    def xywh(box: NDArray[np.floating]) -> list[float]:
        x1, y1, x2, y2 = map(float, box)
        return [x1, y1, x2 - x1, y2 - y1]

    reference = COCO()
    reference.dataset = {
        "images": [{"id": i + 1} for i in range(len(truth.images))],
        "categories": [{"id": i + 1} for i in range(len(truth.classes))],
        "annotations": [
            {"id": i + 1, "image_id": image + 1, "category_id": c + 1, "bbox": box, "area": box[2] * box[3], "iscrowd": crowd}
            for i, (image, c, box, crowd) in enumerate(
                zip(
                    truth.image_index.tolist(),
                    truth.class_id.tolist(),
                    map(xywh, truth.boxes_xyxy),
                    map(int, truth.ignore),
                    strict=True,
                )
            )
        ],
    }
    results = [
        {"image_id": int(i) + 1, "category_id": int(c) + 1, "score": float(s), "bbox": xywh(b)}
        for i, c, s, b in zip(detections.image_index, detections.class_id, detections.score, detections.boxes_xyxy, strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        reference.createIndex()
        scorer = COCOeval(reference, reference.loadRes(results), "bbox")
        scorer.params.maxDets = limits
        scorer.evaluate()
        scorer.accumulate()
    precision, recall = (np.where(scorer.eval[name] < 0, np.nan, scorer.eval[name]) for name in ("precision", "recall"))
    return precision[..., -1], recall


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("max_detections", "limits", "why"),
    [(100, [1, 10, 100], "as COCO"), (300, [1, 10, 100, 300], "more than COCO"), (2, [1, 2], "more found than counts")],
)
def test_it_equals_pycocotools_in_every_size_class_and_limit(
    seed: int, max_detections: int, limits: list[int], why: str
) -> None:
    images, detections = a_scene(seed, scale=1 + seed % 4)
    truth = truth_of(CLASSES, images)
    ours = average_precision(truth, detections, max_detections)
    precision, recall = scored_by_pycocotools(truth, detections, limits)
    assert list(ours.limits) == limits, why
    assert np.allclose(ours.precision, precision, atol=1e-6, equal_nan=True), why
    assert np.allclose(ours.recall, recall, atol=1e-6, equal_nan=True), why


def test_the_scenes_hold_objects_of_every_size_and_crowds() -> None:
    """Otherwise the comparison with pycocotools would compare nothing."""
    truth = truth_of(CLASSES, [image for seed in range(8) for image in a_scene(seed, scale=1 + seed % 4)[0]])
    for size in SIZES:
        assert (within(truth.boxes_xyxy, AREAS[size]) & ~truth.ignore).sum() >= 3
    assert truth.ignore.sum() > 3


def test_a_class_without_truth_has_no_figure() -> None:
    images, detections = a_scene(1)
    per_class = average_precision(truth_of(CLASSES, images), detections, 100).per_class(0.5)
    assert np.isnan(per_class).tolist() == [False, False, False, True]


def test_no_detections_where_there_is_truth_are_a_measured_zero() -> None:
    images, detections = a_scene(1)
    none = detections.from_confidence(2.0)
    assert len(none) == 0
    assert average_precision(truth_of(CLASSES, images), none, 100).per_class()[:3].tolist() == [0, 0, 0]


def test_perfect_detections_score_one() -> None:
    images, _ = a_scene(2, crowds=False)
    truth = truth_of(CLASSES, images)
    perfect = Detections(
        CLASSES,
        truth.images,
        truth.image_index,
        truth.class_id,
        np.ones(len(truth.class_id), np.float32),
        truth.boxes_xyxy.astype(np.float32),
    )
    assert np.allclose(average_precision(truth, perfect, 100).per_class()[:3], 1)
