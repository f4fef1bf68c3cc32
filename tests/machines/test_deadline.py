from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from nightowl.machines.deadline import Outlook, decide, left_seconds, next_time
from nightowl.machines.lease import Lease
from nightowl.machines.pace import worked_seconds
from nightowl.machines.records import Event

NOW = datetime(2026, 7, 1, 1, tzinfo=UTC)
SIX = datetime(2026, 7, 1, 6, tzinfo=UTC)
MINUTES = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("left_minutes", "short", "full_price", "expected", "reason"),
    [
        (120, True, False, (False, "170 min to spare for spot"), "time enough to wait"),
        (270, True, False, (False, "20 min to spare"), "just enough"),
        (271, True, False, (True, "19 min to spare: too little"), "a lost machine would make it late"),
        (290, True, False, (True, "0 min to spare"), "in time at full price only"),
        (320, True, False, (True, "30 min late even at full price"), "late in any case: not later than it must be"),
        (290, False, False, (False, "working"), "what works is left alone"),
        (10, False, True, (True, "already"), "never back: a change costs a restart"),
        (None, True, False, (False, "no finished run"), "nothing is decided on a guess"),
    ],
)
def test_spot_while_the_estimate_allows_it(
    left_minutes: int | None, short: bool, full_price: bool, expected: tuple[bool, str], reason: str
) -> None:
    left = None if left_minutes is None else left_minutes * 60.0
    found = decide(Outlook(done_by=SIX, left_seconds=left, short_of_nodes=short, full_price=full_price), NOW)
    assert found.full_price is expected[0] and expected[1] in found.reason, reason


@pytest.mark.parametrize(
    ("after", "expected", "reason"),
    [
        ("2026-07-01T02:00:00+02:00", "2026-07-01T06:00:00+02:00", "this morning"),
        ("2026-07-01T06:00:00+02:00", "2026-07-02T06:00:00+02:00", "not the moment itself"),
        ("2026-10-24T22:00:00+02:00", "2026-10-25T06:00:00+01:00", "clocks go back in that night"),
        ("2026-07-01T22:30:00+00:00", "2026-07-02T06:00:00+02:00", "the next day has begun there"),
    ],
)
def test_the_time_is_the_next_of_the_clock_on_the_wall(after: str, expected: str, reason: str) -> None:
    found = next_time("06:00", datetime.fromisoformat(after), ZoneInfo("Europe/Berlin"))
    assert found == datetime.fromisoformat(expected), reason


def test_what_is_left_is_what_stages_took_less_what_was_done() -> None:
    pace = {"train": 100.0, "evaluate": 20.0}
    assert left_seconds(["prepare", "train", "evaluate"], pace, {"prepare"}, {"train": 30.0}) == 90.0
    assert left_seconds(["train"], pace, set(), {"train": 130.0}) == 0.0
    assert left_seconds(["train", "export"], pace, set(), {}) is None
    assert left_seconds(["train", "export"], pace, {"train", "export"}, {}) == 0.0


def test_work_that_had_to_be_done_again_is_no_progress() -> None:
    def steps(instance: str, start: int, minutes: int, redone: int) -> Event:
        begun = NOW + start * MINUTES
        values = {"stage": "train", "steps": 100, "redone": redone}
        return Event(instance=instance, kind="steps", start=begun, end=begun + minutes * MINUTES, **values)  # type: ignore[arg-type]

    assert worked_seconds([steps("i-1", 0, 10, 0), steps("i-1", 20, 10, 50)]) == {"train": 900.0}
    assert worked_seconds([steps("i-1", 0, 10, 0), steps("i-2", 0, 10, 0)]) == {"train": 600.0}


@pytest.mark.parametrize(
    ("ends", "expected", "reason"),
    [
        (None, True, "none is in force"),
        (25, False, "less than a third is over"),
        (19, True, "more than a third is over"),
        (-5, True, "it ran out"),
        (60, False, "it is at the hard end already"),
    ],
)
def test_a_lease_is_due_when_a_third_of_it_is_over(ends: float | None, expected: bool, reason: str) -> None:
    lease = Lease(30 * MINUTES, NOW + 60 * MINUTES)
    assert lease.due(None if ends is None else NOW + ends * MINUTES, NOW) is expected, reason
    assert lease.end(NOW) == NOW + 30 * MINUTES and lease.end(NOW + 45 * MINUTES) == NOW + 60 * MINUTES
