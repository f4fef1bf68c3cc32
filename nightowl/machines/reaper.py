"""The reaper: ends whatever carries our tag past its deadline, whoever forgot it and whatever kept AWS's own clock from it.

It needs no board and no memory. What has our tag and no deadline is told and left: it is not ours, or was changed by hand.
"""

import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from nightowl.cloud.ec2_session import Aws
from nightowl.machines.engine import Remains
from nightowl.machines.listing import Rented, rented
from nightowl.machines.sweep import sweep


class Reaped(NamedTuple):
    """A run that was past its deadline, and what is left of it: nothing, or AWS does not let us."""

    run: Rented
    remains: Remains


class Harvest(NamedTuple):
    """What a round of the reaper did. `unclear` carries our tag and no deadline."""

    reaped: tuple[Reaped, ...]
    kept: tuple[Rented, ...]
    unclear: tuple[Rented, ...]

    @property
    def clean(self) -> bool:
        """Is everything that should be gone, gone, and everything else known?"""
        return not self.unclear and all(each.remains.nothing for each in self.reaped)


def overdue(found: Iterable[Rented], now: datetime) -> list[Rented]:
    """What is to be ended at `now` (aware)."""
    return [each for each in found if each.run_id and each.past(now)]


def reap(aws: Aws, now: datetime, sleep: Callable[[float], object] = time.sleep) -> Harvest:
    """End what is past its deadline. Raises RemoteError when AWS does not let us look, or end it."""
    found = rented(aws)
    late = overdue(found, now)
    unclear = tuple(each for each in found if not each.run_id or each.deadline is None)
    kept = tuple(each for each in found if each not in late and each not in unclear)
    return Harvest(tuple(Reaped(each, sweep(aws, each.run_id, sleep=sleep)) for each in late), kept, unclear)


def in_words(harvest: Harvest) -> list[str]:
    """A line for each run that it touched, or could not judge."""
    lines = []
    for run, remains in harvest.reaped:
        what = f"{len(run.instances)} machines, {len(run.groups)} groups, {len(run.templates)} templates"
        left = (*remains.instances, *remains.groups, *remains.templates, *remains.others)
        end = f"still there: {', '.join(left)}; run it again" if left else "gone"
        lines.append(f"{run.run_id}: past its deadline {run.deadline:%Y-%m-%d %H:%M} UTC: {what}: {end}")
    for run in harvest.unclear:
        names = [*(each.id for each in run.instances), *(each.name for each in run.groups)]
        names += [each.name for each in run.templates]
        lines.append(f"{run.run_id or 'no run'}: {', '.join(names)}: our tag but no deadline; look at it and end it by hand")
    return lines
