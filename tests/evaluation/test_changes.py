"""What changed against the champion, told as a table of small scenes."""

import numpy as np
import pytest

from nightowl.data.manifest import Box, Image
from nightowl.evaluation.changes import what_changed
from nightowl.evaluation.detections import Detections, gather
from nightowl.evaluation.postprocess import Found
from nightowl.evaluation.truth import truth_of
from tests.evaluation.scenes import a_scene

CLASSES = ("open", "short")
A, B, ELSEWHERE = (10, 10, 40, 40), (60, 10, 90, 40), (10, 60, 40, 90)

Row = tuple[tuple[int, int, int, int], float, int]


def found(*rows: Row) -> Found:
    boxes = np.array([row[0] for row in rows], np.float32).reshape(-1, 4)
    return Found(boxes, np.array([row[1] for row in rows], np.float32), np.array([row[2] for row in rows], np.int32))


def image(path: str, *boxes: Box) -> Image:
    return Image(path, "0" * 64, 1, 120, 120, "test", boxes)


ONE = (image("a.png", Box(0, *A), Box(1, *B)),)


@pytest.mark.parametrize(
    ("candidate", "champion", "kinds", "reason"),
    [
        (found((A, 0.9, 0)), found((A, 0.9, 0)), [], "both find one and miss the other: nothing changed"),
        (found(), found((A, 0.9, 0)), [("new_miss", "open")], "the champion found it"),
        (found((A, 0.9, 0), (B, 0.9, 1)), found((A, 0.9, 0)), [("new_find", "short")], "the champion missed it"),
        (found((A, 0.4, 0)), found((A, 0.9, 0)), [("new_miss", "open")], "found, but below the threshold"),
        (found((A, 0.9, 0)), found((A, 0.35, 0)), [], "each model has its own threshold"),
        (found((ELSEWHERE, 0.9, 0)), found(), [("new_false_alarm", "open")], "a false alarm that the champion does not raise"),
        (found((ELSEWHERE, 0.9, 0)), found(((11, 61, 41, 91), 0.5, 0)), [], "the same false alarm, a pixel away"),
        (
            found((ELSEWHERE, 0.9, 0)),
            found((ELSEWHERE, 0.9, 1)),
            [("new_false_alarm", "open"), ("gone_false_alarm", "short")],
            "the same place, another class: another alarm",
        ),
        (found(), found((ELSEWHERE, 0.9, 1)), [("gone_false_alarm", "short")], "a false alarm less"),
        (
            found((A, 0.9, 1)),
            found((A, 0.9, 0)),
            [("new_miss", "open"), ("new_false_alarm", "short")],
            "taken for another class now",
        ),
    ],
)
def test_a_change_is(candidate: Found, champion: Found, kinds: list[tuple[str, str]], reason: str) -> None:
    truth = truth_of(CLASSES, ONE)
    ours, theirs = (gather(CLASSES, ["a.png"], [each]) for each in (candidate, champion))
    changes = what_changed(truth, ours, 0.5, theirs, 0.3)
    assert [(change.kind, change.name) for change in changes.changes] == kinds, reason


def test_the_image_with_most_new_errors_comes_first_and_classes_are_counted() -> None:
    images = (image("a.png", Box(0, *A)), image("b.png", Box(0, *A), Box(1, *B)), image("c.png", Box(0, *A)))
    paths = [each.path for each in images]
    ours = gather(CLASSES, paths, [found((ELSEWHERE, 0.8, 1)), found(), found((A, 0.9, 0))])
    theirs = gather(CLASSES, paths, [found((ELSEWHERE, 0.8, 1)), found((A, 0.9, 0), (B, 0.9, 1)), found()])
    changes = what_changed(truth_of(CLASSES, images), ours, 0.5, theirs, 0.5)
    assert [change.image for change in changes.changes] == ["b.png", "b.png", "c.png"]
    opened, short = changes.classes
    assert (opened.num_truth, opened.new_miss, opened.new_find) == (3, 1, 1)
    assert (short.num_truth, short.new_miss, short.new_false_alarm) == (1, 1, 0)
    assert (changes.count("new_miss"), changes.count("new_find")) == (2, 1)


def test_a_crowd_is_neither_missed_nor_found() -> None:
    images = (image("a.png", Box(0, *A, ignore=True)),)
    truth = truth_of(CLASSES, images)
    ours, theirs = (gather(CLASSES, ["a.png"], [each]) for each in (found(), found((A, 0.9, 0))))
    assert what_changed(truth, ours, 0.5, theirs, 0.5).changes == ()


@pytest.mark.parametrize("seed", range(3))
def test_what_is_worse_one_way_is_better_the_other_way(seed: int) -> None:
    images, one = a_scene(seed)
    _, other = a_scene(seed + 100, num_images=len(images))
    truth = truth_of(one.classes, images)
    other = Detections(one.classes, one.images, other.image_index, other.class_id, other.score, other.boxes_xyxy)
    forth, back = what_changed(truth, one, 0.3, other, 0.3), what_changed(truth, other, 0.3, one, 0.3)
    assert forth.count("new_miss") == back.count("new_find")
    assert forth.count("new_false_alarm") == back.count("gone_false_alarm")
    assert what_changed(truth, one, 0.3, one, 0.3).changes == ()
