"""Every kind of bad input has its defined end, and none is a figure of zero. The same list stands in docs/evaluation.md."""

from dataclasses import replace

import numpy as np
import pytest

from nightowl.data.manifest import Box, Image
from nightowl.errors import DataError, StageFailed
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.evaluate import evaluate
from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.truth import Truth, truth_of
from tests.evaluation.scenes import CLASSES, a_scene
from tests.evaluation.test_evaluate import SUBJECT

OBJECT = Box(0, 10, 10, 30, 30)


def measured(truth: Truth, detections: Detections) -> Metrics:
    return evaluate(truth, detections, SUBJECT, max_detections=300, confusion_confidence=0.5).metrics


def one_image(boxes: tuple[Box, ...], rows: list[tuple[float, ...]]) -> tuple[Truth, Detections]:
    """An image of 100 x 100 pixels with detections (score, x1, y1, x2, y2) of the first of two classes."""
    truth = truth_of(("a", "b"), [Image("x.png", "0" * 64, 1, 100, 100, "test", boxes)])
    table = np.array(rows, np.float32).reshape(-1, 5)
    none = np.zeros(len(table), np.int32)
    return truth, Detections(("a", "b"), ("x.png",), none, none, table[:, 0], table[:, 1:])


RIGHT = (0.9, 10.0, 10.0, 30.0, 30.0)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([(np.nan, 10, 10, 30, 30)], StageFailed, r"x\.png: a detection has score nan"),
        ([(0.9, 10, np.nan, 30, 30)], StageFailed, r"x\.png: a detection has score 0\."),
        ([(0.9, 10, 10, np.inf, 30)], StageFailed, r"x\.png: a detection has score 0\."),
        ([(0.9, 30, 10, 10, 30)], StageFailed, r"x\.png: a detection has its corners the wrong way round"),
    ],
)
def test_detections_that_are_no_boxes_name_their_image(
    rows: list[tuple[float, ...]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        measured(*one_image((OBJECT,), [RIGHT, *rows]))


def test_labels_that_are_no_boxes_name_their_image() -> None:
    truth, detections = one_image((OBJECT,), [RIGHT])
    truth.boxes_xyxy[0, 2] = np.nan
    with pytest.raises(DataError, match=r"x\.png: a label has box"):
        measured(truth, detections)


@pytest.mark.parametrize(
    ("box", "ap50", "why"),
    [
        ((150.0, 150.0, 170.0, 170.0), 1.0, "wholly outside: a false alarm, after the right one"),
        ((-20.0, 10.0, 30.0, 30.0), 1.0, "partly outside: measured as it is, not cut to the image"),
        ((20.0, 20.0, 20.0, 20.0), 1.0, "without area: overlaps nothing"),
    ],
)
def test_boxes_outside_the_image_are_false_alarms_and_nothing_worse(box: tuple[float, ...], ap50: float, why: str) -> None:
    metrics = measured(*one_image((OBJECT,), [RIGHT, (0.5, *box)]))
    assert metrics.map50 == pytest.approx(ap50), why
    assert measured(*one_image((OBJECT,), [(0.95, *box), RIGHT])).map50 == pytest.approx(0.5), "before the right one it costs"


def test_a_label_outside_the_image_can_be_missed_like_any() -> None:
    """Prepare takes such labels out; whoever keeps one finds it counted."""
    metrics = measured(*one_image((OBJECT, Box(0, 200, 200, 220, 220)), [RIGHT]))
    assert metrics.num_truth == 2 and metrics.map50 == pytest.approx(0.5, abs=0.01)


def test_a_class_that_never_occurs_has_no_figures_and_does_not_lower_the_mean() -> None:
    metrics = measured(*one_image((OBJECT,), [RIGHT]))
    never = metrics.classes[1]
    assert (metrics.map50, metrics.map50_95) == pytest.approx((1, 1))
    assert (never.ap50, never.ap75, never.ap50_95) == (None, None, None)
    assert never.ar is not None and never.ar.ar100 is None
    assert [(size.num_truth, size.ap50) for size in never.sizes] == [(0, None)] * 3


def test_a_size_that_never_occurs_has_no_figures() -> None:
    sizes = {one.size: one.ap50 for one in measured(*one_image((OBJECT,), [RIGHT])).sizes}
    assert sizes == {"small": pytest.approx(1), "medium": None, "large": None}


def test_no_detections_at_all_are_a_measured_zero_and_their_precision_is_unknown() -> None:
    metrics = measured(*one_image((OBJECT,), []))
    assert (metrics.map50, metrics.classes[0].recall) == (0, 0)
    assert (metrics.classes[0].precision, metrics.classes[0].best_f1_confidence) == (None, None)
    assert metrics.ar is not None and metrics.ar.ar100 == 0


def test_an_image_that_was_never_looked_at_is_no_miss() -> None:
    images, detections = a_scene(0)
    seen = replace(detections.select(detections.image_index < 11), images=detections.images[:-1])
    with pytest.raises(DataError, match=r"1 images have labels but were never looked at, first 011\.png"):
        measured(truth_of(CLASSES, images), seen)


def test_another_class_list_is_said() -> None:
    images, detections = a_scene(0)
    with pytest.raises(DataError, match=r"the truth has classes a, b, c, never, the detections c, a"):
        measured(truth_of(CLASSES, images), detections.with_classes(("c", "a")))


def test_only_crowds_are_no_truth() -> None:
    with pytest.raises(DataError, match="1 images without a single labelled object"):
        measured(*one_image((OBJECT._replace(ignore=True),), [RIGHT]))
