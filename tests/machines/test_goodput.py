"""Where the hours of rented machines went: each moment once, and the parts add up to what was paid."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightowl.machines.bill import Bill, Paid
from nightowl.machines.goodput import WORK, Goodput, divided, goodput, uncovered
from nightowl.machines.records import Event, GenerationEnd
from tests.machines.jobs import NOW

HOURS_OF = (*("training", "redone", "checkpoints", "cache", "data", "environment", "waiting", "other_stages", "other"),)


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def event(kind: str, start: float, end: float, instance: str = "i-1", **more: object) -> Event:
    return Event(instance=instance, kind=kind, start=at(start), end=at(end), **more)  # type: ignore[arg-type]


def paid(instance: str = "i-1", start: float = 0, end: float = 60, usd: float | None = 1.0, lifecycle: str = "spot") -> Paid:
    return Paid(
        instance=instance,
        instance_type="g5.xlarge",
        zone="us-east-1a",
        lifecycle=lifecycle,
        start=at(start),
        end=at(end),
        usd=usd,
        full_usd=3.0,
    )


def account(
    *events: Event, machines: tuple[Paid, ...] = (paid(),), generations: int = 1, ends: tuple[str, ...] = ()
) -> Goodput:
    over = [GenerationEnd(number=n, how=how, message="", at=NOW, by="i-1") for n, how in enumerate(ends, 1)]  # type: ignore[arg-type]
    return goodput(Bill(machines=machines), events, over, generations, (at(-5), at(70)))


def test_a_night_without_a_fault_is_training_with_what_goes_before_it() -> None:
    made = account(
        event("booted", 0, 1),
        event("environment", 1, 4),
        event("data", 4, 8),
        event("stage", 8, 58, stage="train"),
        event("cache", 8, 10),
        event("steps", 10, 55, steps=900),
    )
    minutes = {name: round(60 * getattr(made, f"hours_{name}"), 6) for name in HOURS_OF}
    assert minutes == {
        "training": 45,
        "redone": 0,
        "checkpoints": 0,
        "cache": 2,
        "data": 4,
        "environment": 3,
        "waiting": 0,
        "other_stages": 3,
        "other": 3,
    }
    assert made.share_training == pytest.approx(0.75)
    assert (made.steps, made.steps_redone, made.restarts) == (900, 0, 0)


def test_steps_done_again_are_no_training_that_counts() -> None:
    lost = event("steps", 0, 30, steps=300, generation=1)
    made = account(lost, event("steps", 30, 60, steps=300, redone=100, generation=2), generations=2, ends=("member_lost",))
    assert made.hours_training == pytest.approx(0.5 + 0.5 * 2 / 3)
    assert made.hours_redone == pytest.approx(0.5 / 3)
    assert (made.steps, made.steps_redone, made.restarts, made.lost_without_notice) == (500, 100, 1, 1)


def test_steps_that_two_machines_took_together_are_counted_once_and_their_hours_both() -> None:
    first = event("steps", 0, 60, "i-2", steps=700, redone=70, generation=1, stage="train")
    other = event("steps", 0, 60, "i-1", generation=1, stage="train")  # rank 0 counts them
    made = account(first, other, machines=(paid("i-1"), paid("i-2")))
    assert (made.steps, made.steps_redone, made.hours_paid) == (630, 70, 2)
    assert made.hours_training == pytest.approx(1.8)


def test_notices_are_counted_by_machine_and_waiting_is_paid_for() -> None:
    events = [event("notice", 5, 5), event("notice", 5, 5), event("notice", 9, 9, "i-2"), event("waiting", 20, 50)]
    made = account(*events, machines=(paid("i-1"), paid("i-2", lifecycle="on-demand")))
    assert (made.notices, made.num_machines, made.num_spot) == (2, 2, 1)
    assert made.hours_waiting == 0.5


def test_money_that_is_not_known_is_not_zero() -> None:
    assert account().usd == 1.0
    assert account().usd_saved == 2.0
    unknown = account(machines=(paid(), paid("i-2", usd=None)))
    assert unknown.usd is None and unknown.usd_saved is None and unknown.usd_on_demand == 6.0


@pytest.mark.parametrize(
    ("spans", "minutes", "reason"),
    [
        ([], 60, "there never was one"),
        ([(0, 60)], 0, "always"),
        ([(10, 20), (15, 40)], 30, "before the first and after the last; two at once are no less"),
        ([(-20, 10), (50, 90)], 40, "what lies beyond is none of its time"),
        ([(5, 50), (10, 20)], 15, "one within another"),
    ],
)
def test_time_without_a_machine(spans: list[tuple[float, float]], minutes: float, reason: str) -> None:
    hours = uncovered([(at(begins), at(ends)) for begins, ends in spans], at(0), at(60))
    assert hours * 60 == pytest.approx(minutes), reason


def test_waiting_for_capacity_is_not_paid() -> None:
    made = account(machines=(paid(start=10),))
    assert made.hours_no_machine * 60 == pytest.approx(25)
    assert made.hours_paid * 60 == pytest.approx(50)


def test_no_machine_is_no_share() -> None:
    made = account(machines=())
    assert made.hours_paid == 0 and made.share_training is None


SPANS = st.tuples(st.sampled_from([*WORK, "notice", "left"]), st.floats(-30, 90), st.floats(0, 60), st.integers(0, 5))


@given(st.lists(SPANS, max_size=8))
def test_the_parts_add_up_to_what_was_paid_however_spans_overlap(spans: list[tuple[str, float, float, int]]) -> None:
    events = [event(kind, start, start + long, steps=steps, redone=min(steps, 1)) for kind, start, long, steps in spans]
    hours = divided(events, at(0), at(60), {(None, None): 0.25})
    assert sum(spent for kind, spent in hours.items() if kind != "redone") == pytest.approx(1.0)
    assert 0 <= hours["redone"] <= hours["steps"] + 1e-9
    assert sum(getattr(account(*events), f"hours_{name}") for name in HOURS_OF) == pytest.approx(1.0)
