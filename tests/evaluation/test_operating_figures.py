"""Misses, false positives, escapes and overkill at the operating point."""

import numpy as np
import pytest

from nightowl.data.manifest import Box, Image
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.operating import ClassThreshold, OperatingPoint
from nightowl.evaluation.operating_figures import Figures, OperatingFigures, operating_figures
from nightowl.evaluation.truth import FALSE_ALARM, match, truth_of
from nightowl.params import OperatingLimits
from tests.evaluation.scenes import CLASSES as SCENE
from tests.evaluation.scenes import a_scene

CLASSES = ("open", "short")
HERE, THERE = (0.0, 0.0, 10.0, 10.0), (50.0, 50.0, 60.0, 60.0)
Seen = tuple[int, int, float, tuple[float, float, float, float]]


def point(open_at: float = 0.5, short_at: float = 0.5, overall: float | None = 0.5) -> OperatingPoint:
    classes = tuple(ClassThreshold(name=n, confidence=c) for n, c in zip(CLASSES, (open_at, short_at), strict=True))
    return OperatingPoint(split="val", dataset_version="1" * 64, overall=overall, classes=classes)


def figures(boxes: list[list[Box]], seen: list[Seen], at: OperatingPoint | None = None) -> OperatingFigures | None:
    images = [Image(f"{i}.png", "0" * 64, 1, 100, 100, "test", tuple(own)) for i, own in enumerate(boxes)]
    detections = Detections(
        CLASSES,
        tuple(image.path for image in images),
        np.array([row[0] for row in seen], np.int32),
        np.array([row[1] for row in seen], np.int32),
        np.array([row[2] for row in seen], np.float32),
        np.array([row[3] for row in seen], np.float32).reshape(-1, 4),
    )
    return operating_figures(truth_of(CLASSES, images), detections, at or point(), np.arange(len(images)), 0.95, 200)


def counts(one: Figures) -> dict[str, tuple[int, int]]:
    names = ("miss", "false_positives", "escape", "overkill")
    return {name: (getattr(one, name).events, getattr(one, name).trials) for name in names}


OPEN, SHORT, CROWD = Box(0, *HERE), Box(1, *THERE), Box(0, *HERE, True)


@pytest.mark.parametrize(
    ("boxes", "seen", "overall", "of_open", "why"),
    [
        (
            [[OPEN], []],
            [(0, 0, 0.9, HERE)],
            {"miss": (0, 1), "false_positives": (0, 2), "escape": (0, 1), "overkill": (0, 1)},
            {"miss": (0, 1), "false_positives": (0, 2), "escape": (0, 1), "overkill": (0, 1)},
            "all right",
        ),
        (
            [[OPEN], []],
            [(0, 0, 0.4, HERE), (1, 0, 0.9, HERE)],
            {"miss": (1, 1), "false_positives": (1, 2), "escape": (1, 1), "overkill": (1, 1)},
            {"miss": (1, 1), "false_positives": (1, 2), "escape": (1, 1), "overkill": (1, 1)},
            "below the threshold it is not seen: escaped; the good part is thrown away",
        ),
        (
            [[OPEN]],
            [(0, 1, 0.9, HERE)],
            {"miss": (1, 1), "false_positives": (1, 1), "escape": (0, 1), "overkill": (0, 0)},
            {"miss": (1, 1), "false_positives": (0, 1), "escape": (1, 1), "overkill": (0, 0)},
            "taken for another class: the part is stopped all the same, the class escapes",
        ),
        (
            [[OPEN, SHORT], [SHORT]],
            [(0, 0, 0.9, HERE), (1, 0, 0.9, THERE)],
            {"miss": (2, 3), "false_positives": (1, 2), "escape": (0, 2), "overkill": (0, 0)},
            {"miss": (0, 1), "false_positives": (1, 2), "escape": (0, 1), "overkill": (1, 1)},
            "an image without this class is good for it",
        ),
        (
            [[CROWD], []],
            [(0, 0, 0.9, HERE)],
            {"miss": (0, 0), "false_positives": (0, 2), "escape": (0, 0), "overkill": (0, 1)},
            {"miss": (0, 0), "false_positives": (0, 2), "escape": (0, 0), "overkill": (0, 1)},
            "a crowd makes an image neither good nor faulty",
        ),
    ],
)
def test_every_image_is_counted_once_for_what_it_is(
    boxes: list[list[Box]],
    seen: list[Seen],
    overall: dict[str, tuple[int, int]],
    of_open: dict[str, tuple[int, int]],
    why: str,
) -> None:
    measured = figures(boxes, seen)
    assert measured is not None
    assert counts(measured.overall) == overall, why
    assert counts(measured.classes[0]) == of_open, why


def test_each_class_counts_from_its_own_threshold() -> None:
    boxes, seen = [[OPEN, SHORT]], [(0, 0, 0.6, HERE), (0, 1, 0.6, THERE)]
    measured = figures(boxes, seen, point(open_at=0.5, short_at=0.7))
    assert measured is not None
    assert [one.miss.events for one in (measured.overall, *measured.classes)] == [1, 0, 1]
    assert [one.confidence for one in measured.classes] == pytest.approx([0.5, 0.7])


def test_without_good_images_overkill_is_unknown_and_not_zero() -> None:
    measured = figures([[OPEN]], [(0, 0, 0.9, HERE)])
    assert measured is not None
    assert measured.overall.overkill.value is None and measured.overall.overkill.interval is None
    assert measured.overall.escape.value == 0


def test_nothing_detected_is_a_measured_miss_of_all() -> None:
    measured = figures([[OPEN], [SHORT], []], [])
    assert measured is not None
    rates = (measured.overall.miss.value, measured.overall.false_positives.value, measured.overall.escape.value)
    assert rates == (1, 0, 1) and measured.overall.overkill.value == 0


def test_a_model_without_any_threshold_has_no_figures() -> None:
    assert figures([[OPEN]], [(0, 0, 0.9, HERE)], point(overall=None)) is None


@pytest.mark.parametrize("seed", range(4))
def test_the_counts_are_those_of_the_matching(seed: int) -> None:
    images, detections = a_scene(seed, num_images=30)
    truth = truth_of(SCENE, images)
    classes = tuple(ClassThreshold(name=name, confidence=None) for name in SCENE)
    at = OperatingPoint(split="val", dataset_version="1" * 64, overall=0.4, classes=classes)
    measured = operating_figures(truth, detections, at, np.arange(30), 0.95, 200)
    matched = match(truth, detections.from_confidence(0.4))
    assert measured is not None
    assert measured.overall.miss.events == truth.counts().sum() - (matched >= 0).sum()
    assert measured.overall.false_positives.events == (matched == FALSE_ALARM).sum()
    assert sum(one.miss.events for one in measured.classes) == measured.overall.miss.events


def test_images_of_one_lot_say_less_than_independent_ones() -> None:
    boxes = [[OPEN] for _ in range(40)]
    seen: list[Seen] = [(i, 0, 0.9, HERE) for i in range(40) if i >= 10]
    images = [Image(f"{i}.png", "0" * 64, 1, 100, 100, "test", tuple(own)) for i, own in enumerate(boxes)]
    rows = np.array([row[0] for row in seen], np.int32)
    table = np.array([row[3] for row in seen], np.float32)
    paths = tuple(image.path for image in images)
    detections = Detections(CLASSES, paths, rows, np.zeros_like(rows), np.full(len(rows), 0.9, np.float32), table)
    truth = truth_of(CLASSES, images)
    alone, in_lots = (
        operating_figures(truth, detections, point(), groups, 0.95, 500) for groups in (np.arange(40), np.arange(40) // 10)
    )
    assert alone is not None and in_lots is not None
    assert alone.overall.miss.value == in_lots.overall.miss.value == 0.25
    assert alone.overall.miss.interval is not None and in_lots.overall.miss.interval is not None
    assert in_lots.overall.miss.interval.high > alone.overall.miss.interval.high


def test_only_a_class_with_limits_is_tested_against_them() -> None:
    boxes, seen = [[OPEN, SHORT]] * 8, [(i, 0, 0.9, HERE) for i in range(3)]
    images = [Image(f"{i}.png", "0" * 64, 1, 100, 100, "test", tuple(own)) for i, own in enumerate(boxes)]
    rows, table = np.array([row[0] for row in seen], np.int32), np.array([row[3] for row in seen], np.float32)
    paths = tuple(image.path for image in images)
    detections = Detections(CLASSES, paths, rows, np.zeros_like(rows), np.full(3, 0.9, np.float32), table)
    limits = {"open": OperatingLimits(max_miss_rate=0.1)}
    truth = truth_of(CLASSES, images)
    measured = operating_figures(truth, detections, point(), np.arange(8), 0.95, 200, class_limits=limits)
    assert measured is not None
    of_open, of_short = measured.classes
    assert of_open.miss.p_above is not None and of_open.miss.p_above < 0.05
    assert (of_open.escape.p_above, of_short.miss.p_above, measured.overall.miss.p_above) == (None, None, None)
