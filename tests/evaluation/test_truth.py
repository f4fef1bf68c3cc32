"""Which detection found which object."""

import numpy as np
import pytest

from nightowl.data.manifest import Box, Image
from nightowl.evaluation.average_precision import average_precision
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.truth import FALSE_ALARM, IGNORED, confusion, match, overlaps, truth_of
from tests.evaluation.scenes import CLASSES, a_scene

NAMES = ("a", "b")
Row = tuple[int, float, tuple[float, float, float, float]]


def one_image(boxes: list[Box], rows: list[Row]) -> tuple[tuple[Image, ...], Detections]:
    image = Image("x.png", "0" * 64, 1, 100, 100, "test", tuple(boxes))
    detections = Detections(
        NAMES,
        ("x.png",),
        np.zeros(len(rows), np.int32),
        np.array([row[0] for row in rows], np.int32),
        np.array([row[1] for row in rows], np.float32),
        np.array([row[2] for row in rows], np.float32).reshape(-1, 4),
    )
    return (image,), detections


WHOLE, SHIFTED, FAR = (0.0, 0.0, 10.0, 10.0), (0.0, 0.0, 10.0, 8.0), (50.0, 50.0, 60.0, 60.0)


@pytest.mark.parametrize(
    ("boxes", "rows", "expected", "why"),
    [
        (
            [Box(0, *WHOLE)],
            [(0, 0.5, SHIFTED), (0, 0.9, WHOLE)],
            [FALSE_ALARM, 0],
            "the best score takes it, the double is false",
        ),
        ([Box(0, *WHOLE)], [(1, 0.9, WHOLE)], [FALSE_ALARM], "another class finds nothing"),
        ([Box(0, *WHOLE)], [(0, 0.9, (0, 0, 10, 5))], [0], "an IoU of exactly 0.5 counts"),
        ([Box(0, *WHOLE, True)], [(0, 0.9, WHOLE), (0, 0.8, SHIFTED)], [IGNORED, IGNORED], "a crowd takes any number"),
        ([Box(0, *WHOLE, True)], [(0, 0.9, FAR)], [FALSE_ALARM], "outside the crowd it is false"),
        (
            [Box(0, 0, 0, 30, 30, True), Box(0, *SHIFTED)],
            [(0, 0.9, WHOLE)],
            [1],
            "a real object before a crowd, even at lower IoU",
        ),
        ([], [(0, 0.9, WHOLE)], [FALSE_ALARM], "no truth"),
        ([Box(0, *WHOLE)], [], [], "no detections"),
    ],
)
def test_matching_follows_coco(boxes: list[Box], rows: list[Row], expected: list[int], why: str) -> None:
    images, detections = one_image(boxes, rows)
    assert match(truth_of(NAMES, images), detections).tolist() == expected, why


@pytest.mark.parametrize("seed", range(6))
def test_recall_by_matching_equals_the_recall_of_average_precision(seed: int) -> None:
    images, detections = a_scene(seed)
    truth = truth_of(CLASSES, images)
    matched = match(truth, detections)
    precision = average_precision(truth, detections, 1000)
    for class_id in range(3):
        found = (matched[detections.class_id == class_id] >= 0).sum()
        reached = precision.recall_points[precision.precision[0, :, class_id, 0] > 0].max(initial=0)
        assert reached <= found / truth.counts()[class_id] + 1e-9 < reached + 0.01 + 1e-9


@pytest.mark.parametrize(
    ("boxes", "rows", "expected", "why"),
    [
        ([Box(0, *WHOLE)], [(0, 0.9, WHOLE)], [[1, 0, 0], [0, 0, 0], [0, 0, 0]], "right"),
        ([Box(0, *WHOLE)], [(1, 0.9, WHOLE)], [[0, 0, 0], [1, 0, 0], [0, 0, 0]], "taken for b"),
        ([Box(0, *WHOLE)], [(0, 0.2, WHOLE)], [[0, 0, 0], [0, 0, 0], [1, 0, 0]], "below the confidence: missed"),
        ([], [(1, 0.9, WHOLE)], [[0, 0, 0], [0, 0, 1], [0, 0, 0]], "a false alarm"),
        ([Box(0, *WHOLE)], [(1, 0.9, SHIFTED), (0, 0.8, WHOLE)], [[1, 0, 0], [0, 0, 1], [0, 0, 0]], "the closest pair first"),
        ([Box(0, *WHOLE, True)], [(1, 0.9, WHOLE)], [[0, 0, 0], [0, 0, 0], [0, 0, 0]], "in a crowd nothing counts"),
    ],
)
def test_the_confusion_matrix_says_what_was_taken_for_what(
    boxes: list[Box], rows: list[Row], expected: list[list[int]], why: str
) -> None:
    images, detections = one_image(boxes, rows)
    assert confusion(truth_of(NAMES, images), detections, 0.5).tolist() == expected, why


@pytest.mark.parametrize("seed", range(4))
def test_the_confusion_matrix_counts_every_object_once(seed: int) -> None:
    images, detections = a_scene(seed)
    truth = truth_of(CLASSES, images)
    counts = confusion(truth, detections, 0.3)
    assert counts[:, :-1].sum(axis=0).tolist() == truth.counts().tolist()


def test_truth_among_common_classes_is_renumbered_by_them() -> None:
    images, _ = one_image([Box(0, *WHOLE), Box(1, *FAR)], [])
    truth = truth_of(NAMES, images, among=("b",))
    assert (truth.classes, truth.class_id.tolist()) == (("b",), [0])


def test_boxes_without_area_overlap_nothing() -> None:
    point = np.zeros((1, 4))
    assert overlaps(point, point, np.array([False])).tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("num_boxes", "num_others", "side", "why"),
    [(100, 70, 100.0, "more boxes than are looked at at once"), (100, 70, 1500.0, "most are far apart"), (1, 5, 60.0, "one")],
)
def test_overlaps_are_those_of_each_pair_alone(num_boxes: int, num_others: int, side: float, why: str) -> None:
    random = np.random.default_rng(0)
    boxes, others = (np.tile(random.uniform(0, side, (n, 2)), 2) for n in (num_boxes, num_others))
    boxes[:, 2:] += random.uniform(0, 60, (num_boxes, 2))
    others[:, 2:] += random.uniform(0, 60, (num_others, 2))
    crowd = random.random(num_others) < 0.2
    alone = [[overlaps(box[None], other[None], crowd[j : j + 1])[0, 0] for j, other in enumerate(others)] for box in boxes]
    table = overlaps(boxes, others, crowd)
    assert np.array_equal(table, alone), why
    assert (table > 0).any(), why
    x, y, p, q = boxes[0]
    a, b, c, d = others[0]
    shared = max(min(p, c) - max(x, a), 0) * max(min(q, d) - max(y, b), 0)
    areas = (p - x) * (q - y), (c - a) * (d - b)
    assert table[0, 0] == pytest.approx(shared / (areas[0] if crowd[0] else sum(areas) - shared)), why
