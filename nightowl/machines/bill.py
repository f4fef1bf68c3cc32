"""What the machines of a run cost, against what they would have cost at full price: from what they told and what AWS asked."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from pydantic import AwareDatetime

from nightowl.machines.price import Prices
from nightowl.machines.records import Event, NodeBeat
from nightowl.records import Record


class Paid(Record):
    """One machine, from its first word to its last. USD; None: unknown."""

    instance: str
    instance_type: str
    zone: str
    lifecycle: str
    start: AwareDatetime
    end: AwareDatetime
    usd: float | None
    full_usd: float | None

    @property
    def hours(self) -> float:
        return (self.end - self.start) / timedelta(hours=1)


class Bill(Record):
    """All of them. `usd` is unknown (None) as soon as one machine's is: half a bill would look like a cheap night."""

    machines: tuple[Paid, ...]

    @property
    def hours(self) -> float:
        return sum(each.hours for each in self.machines)

    @property
    def usd(self) -> float | None:
        return _sum(each.usd for each in self.machines)

    @property
    def full_usd(self) -> float | None:
        """What it would have cost without spot."""
        return _sum(each.full_usd for each in self.machines)

    def deadline_usd(self, prices: Prices) -> float | None:
        """What keeping a deadline cost: of machines at full price, what spot would have saved in the same hours."""
        extra = [
            None if spot is None or each.usd is None else each.usd - spot
            for each in self.machines
            if each.lifecycle == "on-demand"
            for spot in [prices.cost(each.instance_type, each.zone, "spot", each.start, each.end)]
        ]
        return _sum(extra)


def spans(beats: Sequence[NodeBeat], events: Iterable[Event]) -> dict[str, tuple[datetime, datetime]]:
    """From when to when each machine was there, as far as it told."""
    told = {beat.instance: (beat.at, beat.at) for beat in beats}
    for event in events:
        if event.instance in told:
            start, end = told[event.instance]
            told[event.instance] = (min(start, event.start), max(end, event.end))
    return told


def bill(beats: Sequence[NodeBeat], events: Iterable[Event], prices: Prices) -> Bill:
    """Every machine that has given a sign of life, in order of its start."""
    told = spans(beats, events)
    rows = []
    for beat in beats:
        start, end = told[beat.instance]
        where = (beat.instance_type, beat.zone, beat.lifecycle)
        rows.append(
            Paid(
                instance=beat.instance,
                instance_type=beat.instance_type,
                zone=beat.zone,
                lifecycle=beat.lifecycle,
                start=start,
                end=end,
                usd=prices.cost(*where, start, end),
                full_usd=prices.full_cost(beat.instance_type, start, end),
            )
        )
    return Bill(machines=tuple(sorted(rows, key=lambda row: (row.start, row.instance))))


def _sum(amounts: Iterable[float | None]) -> float | None:
    total = 0.0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total
