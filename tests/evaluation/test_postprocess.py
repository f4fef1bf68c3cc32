"""Detections from a head equal those that ultralytics keeps, whatever the order."""

import numpy as np
import pytest
import torch
import torchvision  # noqa: F401 - once imported, ultralytics uses its (fast) kernel
from numpy.typing import NDArray
from ultralytics.utils.nms import non_max_suppression

from nightowl.evaluation.postprocess import MAX_CANDIDATES, Found, decode, suppress


def a_head(seed: int, classes: int, anchors: int = 600) -> NDArray[np.float32]:
    """A raw head's output with crowded boxes; on eighths of a pixel, where ultralytics' class offset loses nothing."""
    random = np.random.default_rng(seed)
    centre = random.integers(0, 640, (2, anchors)) / 8
    sides = random.integers(16, 240, (2, anchors)) / 4
    scores = random.random((classes, anchors)) ** 4
    return np.concatenate([centre, sides, scores]).astype(np.float32)


def rows(found: Found) -> NDArray[np.float32]:
    table = np.concatenate([found.boxes_xyxy, found.score[:, None], found.class_id[:, None]], axis=1)
    return table[np.lexsort(table.T)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("classes", "confidence", "iou", "max_detections", "why"),
    [
        (3, 0.001, 0.7, 300, "as measured"),
        (1, 0.001, 0.7, 300, "one class: upstream takes another path"),
        (5, 0.25, 0.45, 300, "as commonly predicted"),
        (3, 0.001, 0.7, 20, "more found than may stay"),
        (3, 0.9999, 0.7, 300, "nothing found"),
    ],
)
def test_a_raw_head_gives_what_ultralytics_keeps(
    seed: int, classes: int, confidence: float, iou: float, max_detections: int, why: str
) -> None:
    output = a_head(seed, classes)
    ours = decode(output, "raw", confidence=confidence, iou=iou, max_detections=max_detections)
    theirs = non_max_suppression(
        torch.from_numpy(output)[None], confidence, iou, multi_label=True, max_det=max_detections, max_time_img=60
    )[0].numpy()
    assert np.array_equal(rows(ours), theirs[np.lexsort(theirs.T)]), why
    assert (np.diff(ours.score) <= 0).all()


def test_only_the_best_candidates_are_looked_at() -> None:
    output = a_head(0, classes=30, anchors=2000)
    assert (output[4:] > 0).sum() > MAX_CANDIDATES
    ours = decode(output, "raw", confidence=0, iou=0.7, max_detections=300)
    theirs = non_max_suppression(torch.from_numpy(output)[None], 0, 0.7, multi_label=True, max_time_img=60)[0].numpy()
    assert np.array_equal(rows(ours), theirs[np.lexsort(theirs.T)])


def test_an_end_to_end_head_is_only_filtered_and_sorted() -> None:
    output = np.array([[0, 0, 4, 4, 0.2, 1], [0, 0, 4, 4, 0.9, 0], [1, 1, 2, 2, 0.0005, 0], [5, 5, 9, 9, 0.4, 2]], np.float32)
    found = decode(output, "end2end", confidence=0.001, iou=0.7, max_detections=2)
    assert found.class_id.tolist() == [0, 2]
    assert found.boxes_xyxy.tolist() == [[0, 0, 4, 4], [5, 5, 9, 9]]


def test_boxes_of_different_classes_do_not_suppress_each_other() -> None:
    boxes = np.array([[0, 0, 4, 4]] * 3, np.float32)
    found = Found(boxes, np.array([0.9, 0.8, 0.7], np.float32), np.array([0, 1, 0], np.int32))
    assert suppress(found, 0.7, 300).tolist() == [0, 1]


def test_boxes_without_area_are_kept_without_a_warning() -> None:
    boxes = np.zeros((2, 4), np.float32)
    found = Found(boxes, np.array([0.9, 0.8], np.float32), np.zeros(2, np.int32))
    assert suppress(found, 0.7, 300).tolist() == [0, 1]
