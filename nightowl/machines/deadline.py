"""'Done by 06:00': spot while the estimate leaves room for a machine to be lost and replaced; full price when it does not.

Pure. The estimate is what the last finished run of the detector took, less what this one has done; without one nothing is
decided on a guess, and spot it stays.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, time, timedelta, tzinfo

from nightowl.records import Record

BOOT = timedelta(minutes=10)  # from asking for a machine to its first step
RESERVE = timedelta(minutes=20)  # for another attempt at spot, and for an estimate that is a little short


class Outlook(Record):
    """A run as it is now. `left_seconds` of work: None when nobody knows. `short_of_nodes`: it waits for machines."""

    done_by: datetime
    left_seconds: float | None
    short_of_nodes: bool
    full_price: bool


class Decision(Record):
    """Whether machines are to be taken at full price from now on, and why."""

    full_price: bool
    reason: str


def decide(outlook: Outlook, now: datetime) -> Decision:
    """What to do now (aware). Machines that work are left alone, and full price is never taken back: a change costs a
    restart."""
    if outlook.full_price:
        return Decision(full_price=True, reason="at full price already")
    if outlook.left_seconds is None:
        return Decision(full_price=False, reason="no finished run of this detector says how long it takes")
    if not outlook.short_of_nodes:
        return Decision(full_price=False, reason="its machines are working")
    spare = outlook.done_by - now - timedelta(seconds=outlook.left_seconds) - BOOT
    if spare >= RESERVE:
        return Decision(full_price=False, reason=f"{_minutes(spare)} min to spare for spot")
    if spare >= timedelta(0):
        return Decision(full_price=True, reason=f"{_minutes(spare)} min to spare: too little to wait for spot")
    return Decision(full_price=True, reason=f"{_minutes(-spare)} min late even at full price; spot would be later")


def next_time(clock: str, after: datetime, zone: tzinfo | None = None) -> datetime:
    """The next HH:MM after then (aware) by the clocks of `zone`; of this machine's zone without one."""
    hour, minute = map(int, clock.split(":"))
    local = after.astimezone(zone)
    for days in range(2):
        naive = datetime.combine(local.date() + timedelta(days=days), time(hour, minute))
        moment = naive.replace(tzinfo=zone) if zone else naive.astimezone()
        if moment > after:
            return moment
    raise AssertionError("one of two days is later")


def left_seconds(
    stages: Collection[str], pace: Mapping[str, float], done: Collection[str], spent: Mapping[str, float]
) -> float | None:
    """Seconds of work that are left: what stages took last time (`pace`), less what was `spent` on those that are not `done`.
    None when a stage that is to come is not in `pace`."""
    ahead = [stage for stage in stages if stage not in done]
    if any(stage not in pace for stage in ahead):
        return None
    return sum(max(0.0, pace[stage] - spent.get(stage, 0.0)) for stage in ahead)


def _minutes(span: timedelta) -> int:
    return round(span.total_seconds() / 60)
