"""What carries our tag in a region, run by run: since when, until when, and what it has cost. The board is not asked: it may be
gone, and what costs money must be found all the same."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from nightowl.cloud.ec2_groups import Group, groups_with
from nightowl.cloud.ec2_instances import Instance, instances_with
from nightowl.cloud.ec2_session import Aws
from nightowl.cloud.ec2_tags import DETECTOR, OURS, RUN, Tags, deadline_in
from nightowl.cloud.ec2_templates import Template, templates_with
from nightowl.machines.price import Prices


class Rented(NamedTuple):
    """Everything of one run. `deadline` (aware) is when its machines should be gone; None: no tag says."""

    run_id: str
    detector: str
    deadline: datetime | None
    groups: tuple[Group, ...]
    instances: tuple[Instance, ...]
    templates: tuple[Template, ...]

    def past(self, now: datetime) -> bool:
        return self.deadline is not None and self.deadline <= now


def rented(aws: Aws) -> list[Rented]:
    """What is there now, in order of run."""
    return by_run(groups_with(aws, OURS), instances_with(aws, OURS), templates_with(aws, OURS))


def by_run(groups: Iterable[Group], instances: Iterable[Instance], templates: Iterable[Template]) -> list[Rented]:
    """Sorted by the run in their tags. A group's deadline goes before its machines', which may have been tagged earlier; the
    template's, the hard end of the run, counts when nothing else is there."""
    groups, instances, templates = list(groups), list(instances), list(templates)
    found = []
    tagged: list[Tags] = [*(each.tags for each in groups), *(each.tags for each in instances)]
    tagged += [each.tags for each in templates]
    for run_id in sorted({tags.get(RUN, "") for tags in tagged}):
        own_groups = tuple(each for each in groups if each.tags.get(RUN, "") == run_id)
        own = tuple(each for each in instances if each.tags.get(RUN, "") == run_id)
        own_templates = tuple(each for each in templates if each.tags.get(RUN, "") == run_id)
        of_groups: list[Tags] = [each.tags for each in own_groups]
        decisive = of_groups or [each.tags for each in own] or [each.tags for each in own_templates]
        ends = [end for tags in decisive if (end := deadline_in(tags)) is not None]
        deadline = max(ends) if len(ends) == len(decisive) else None
        found.append(Rented(run_id, decisive[0].get(DETECTOR, ""), deadline, own_groups, own, own_templates))
    return found


class Row(NamedTuple):
    """A machine for the eyes: its age in hours, USD an hour now, and USD so far (None: unknown)."""

    run_id: str
    detector: str
    instance: Instance
    hours: float
    usd_per_hour: float | None
    usd: float | None
    deadline: datetime | None


def rows(found: Iterable[Rented], prices: Prices, now: datetime) -> list[Row]:
    """One a machine, oldest first in each run."""
    return [
        Row(
            run_id=each.run_id,
            detector=each.detector,
            instance=machine,
            hours=max(0.0, (now - machine.launched_at).total_seconds() / 3600),
            usd_per_hour=prices.now(machine.type, machine.zone, machine.lifecycle),
            usd=prices.cost(machine.type, machine.zone, machine.lifecycle, machine.launched_at, now),
            deadline=each.deadline,
        )
        for each in found
        for machine in each.instances
    ]
