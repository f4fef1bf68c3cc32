"""What the time of a run's machines went into: of the hours paid, those of training that counted, and what became of the rest.

Each moment of each machine is counted once: what spans overlap goes to the one that stands first in `WORK`, and what no span
covers is `other`. So the parts add up to the hours paid.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from nightowl.machines.bill import Bill
from nightowl.machines.records import Event, EventKind, GenerationEnd
from nightowl.records import Record

WORK: tuple[EventKind, ...] = ("steps", "checkpoint", "cache", "data", "environment", "waiting", "stage", "booted")
_HOUR = timedelta(hours=1)
Together = tuple[int | None, str | None]
"""Who trains together: a generation and a stage."""


class Goodput(Record):
    """Hours are of machines, not of ranks; `hours_no_machine` alone are of the clock: there was none to be had, and none was
    paid. USD; None: unknown. `restarts` are generations after the first."""

    num_machines: int
    num_spot: int
    hours_paid: float
    hours_training: float
    hours_redone: float
    hours_checkpoints: float
    hours_cache: float
    hours_data: float
    hours_environment: float
    hours_waiting: float
    hours_other_stages: float
    hours_other: float
    hours_no_machine: float
    steps: int
    steps_redone: int
    restarts: int
    notices: int
    lost_without_notice: int
    usd: float | None
    usd_on_demand: float | None
    usd_for_deadline: float | None

    @property
    def share_training(self) -> float | None:
        """Of the hours paid, those in steps that counted; None when nothing was paid."""
        return self.hours_training / self.hours_paid if self.hours_paid else None

    @property
    def usd_saved(self) -> float | None:
        """Against the same hours at full price."""
        return None if self.usd is None or self.usd_on_demand is None else self.usd_on_demand - self.usd


def goodput(
    bill: Bill,
    events: Iterable[Event],
    ends: Sequence[GenerationEnd],
    num_generations: int,
    wanted: tuple[datetime, datetime],
    usd_for_deadline: float | None = None,
) -> Goodput:
    """The account of a run that is over, from what its machines told; machines were `wanted` from when it was asked for
    until it ended."""
    by_machine: dict[str, list[Event]] = {}
    for event in events:
        by_machine.setdefault(event.instance, []).append(event)
    hours = dict.fromkeys((*WORK, "other", "redone"), 0.0)
    steps = [event for told in by_machine.values() for event in told if event.kind == "steps"]
    shares = {(event.generation, event.stage): event.redone / event.steps for event in steps if event.steps}
    for paid in bill.machines:
        for kind, spent in divided(by_machine.get(paid.instance, []), paid.start, paid.end, shares).items():
            hours[kind] += spent
    redone = sum(event.redone for event in steps)
    return Goodput(
        num_machines=len(bill.machines),
        num_spot=sum(each.lifecycle == "spot" for each in bill.machines),
        hours_paid=bill.hours,
        hours_training=hours["steps"] - hours["redone"],
        hours_redone=hours["redone"],
        hours_checkpoints=hours["checkpoint"],
        hours_cache=hours["cache"],
        hours_data=hours["data"],
        hours_environment=hours["environment"],
        hours_waiting=hours["waiting"],
        hours_other_stages=hours["stage"],
        hours_other=hours["booted"] + hours["other"],
        hours_no_machine=uncovered([(each.start, each.end) for each in bill.machines], *wanted),
        steps=sum(event.steps for event in steps) - redone,
        steps_redone=redone,
        restarts=max(0, num_generations - 1),
        notices=len({event.instance for told in by_machine.values() for event in told if event.kind == "notice"}),
        lost_without_notice=sum(end.how == "member_lost" for end in ends),
        usd=bill.usd,
        usd_on_demand=bill.full_usd,
        usd_for_deadline=usd_for_deadline,
    )


def divided(events: Sequence[Event], start: datetime, end: datetime, redone: Mapping[Together, float]) -> dict[str, float]:
    """The hours from `start` to `end` by what they went into. The one of `redone` is the part of those of steps that was done
    before: rank 0 counts the steps of all who train together, and tells their share."""
    spans = [event for event in events if event.kind in WORK]
    borders = sorted({start, end, *(min(max(at, start), end) for each in spans for at in (each.start, each.end))})
    hours = dict.fromkeys((*WORK, "other", "redone"), 0.0)
    for left, right in pairwise(borders):
        over = [each for each in spans if each.start <= left and each.end >= right]
        found = min(over, key=lambda each: WORK.index(each.kind), default=None)
        hours[found.kind if found else "other"] += (right - left) / _HOUR
        if found is not None and found.kind == "steps":
            hours["redone"] += (right - left) / _HOUR * min(1.0, redone.get((found.generation, found.stage), 0.0))
    return hours


def uncovered(spans: Iterable[tuple[datetime, datetime]], start: datetime, end: datetime) -> float:
    """The hours from `start` to `end` that no span covers."""
    hours, at = 0.0, start
    for begins, ends in sorted(spans):
        hours += max(timedelta(0), min(begins, end) - at) / _HOUR
        at = max(at, min(ends, end))
    return hours + max(timedelta(0), end - at) / _HOUR
