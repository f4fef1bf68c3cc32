"""The spans of time that work comes to."""

from datetime import timedelta

import pytest

from nightowl.machines.assignment import Assignment, spans, taken_before
from nightowl.machines.generations import Sight
from nightowl.machines.supervise import Work
from nightowl.training.steps_taken import Steps
from tests.machines.jobs import NOW, a_beat

TRAINING = Assignment(Work("train", 2), 0, NOW, taken_before=53, steps_at=NOW + timedelta(minutes=1))
STOPPED = NOW + timedelta(minutes=9)


@pytest.mark.parametrize(
    ("done", "steps", "expected", "why"),
    [
        (TRAINING, Steps(40, 100), [("cache", 0, 1, 0, 0), ("steps", 1, 10, 60, 13)], "images first, then steps"),
        (
            Assignment(Work("train", 2), 0, NOW, 53, NOW + timedelta(minutes=1), STOPPED),
            Steps(53, 60),
            [("cache", 0, 1, 0, 0), ("steps", 1, 9, 7, 0), ("checkpoint", 9, 10, 0, 0)],
            "what came after the wish to stop is saving",
        ),
        (Assignment(Work("train", 2), 0, NOW), None, [("cache", 0, 10, 0, 0)], "it came to no step"),
        (Assignment(Work("train", 2), 1, NOW), None, [("steps", 0, 10, 0, 0)], "rank 0 counts the steps"),
        (Assignment(Work("export", 2), 0, NOW), None, [("stage", 0, 10, 0, 0)], "another stage"),
    ],
)
def test_each_minute_of_work_is_of_one_kind(
    done: Assignment, steps: Steps | None, expected: list[tuple[str, int, int, int, int]], why: str
) -> None:
    found = spans("i-1", done, steps, NOW + timedelta(minutes=10))
    assert [
        (event.kind, (event.start - NOW).seconds // 60, (event.end - NOW).seconds // 60, event.steps, event.redone)
        for event in found
    ] == expected, why


def test_what_was_taken_before_is_what_the_last_leader_told() -> None:
    sights = {
        name: Sight(a_beat(name, generation=generation, taken=taken), 0, True)
        for name, generation, taken in (("a", 1, 90), ("b", 2, 80), ("c", 3, None))
    }
    assert taken_before(sights) == 80
    assert taken_before({}) is None
