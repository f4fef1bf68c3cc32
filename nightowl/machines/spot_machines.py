"""The machines of one run in AWS: what is there, and each single thing that can be done about it. `spot` decides which."""

import hashlib
from collections.abc import Callable
from datetime import datetime

from nightowl.cloud.ec2_facts import find_image, find_subnets
from nightowl.cloud.ec2_groups import (
    Group,
    GroupSpec,
    create_group,
    groups_with,
    schedule_end,
    scheduled_end,
    shape_group,
    tag_group,
)
from nightowl.cloud.ec2_instances import tag
from nightowl.cloud.ec2_session import Aws
from nightowl.cloud.ec2_tags import DEADLINE, OURS, RUN, as_tag, tags_of
from nightowl.cloud.ec2_templates import TemplateSpec, create_template, templates_with
from nightowl.errors import RemoteError
from nightowl.machine_settings import MachineSettings
from nightowl.machines.job import Job
from nightowl.machines.spot_plan import Existing, Step
from nightowl.machines.sweep import PAUSE_SECONDS

_ENDING_SECONDS = 300.0


class SpotMachines:
    """`user_data` writes what a machine runs when it boots."""

    def __init__(
        self, settings: MachineSettings, aws: Aws, user_data: Callable[[Job], str], sleep: Callable[[float], object]
    ) -> None:
        self._settings, self._aws, self._user_data, self._sleep = settings, aws, user_data, sleep

    def look(self, run_id: str) -> Existing:
        """What of the run is there. A group whose end has begun is waited for: nothing can be made of it."""
        tags = {**OURS, RUN: run_id}
        for _ in range(int(_ENDING_SECONDS / PAUSE_SECONDS)):
            group = self.group(run_id)
            if group is None or not group.ending:
                break
            self._sleep(PAUSE_SECONDS)
        else:
            raise RemoteError(f"{_name(run_id)}: AWS has been deleting this group for {_ENDING_SECONDS:.0f} s: try again later")
        end_at = scheduled_end(self._aws, group.name) if group else None
        return Existing(bool(templates_with(self._aws, tags)), group, end_at)

    def group(self, run_id: str) -> Group | None:
        return next(iter(groups_with(self._aws, {**OURS, RUN: run_id})), None)

    def zone(self) -> str:
        """Of the first subnet."""
        return find_subnets(self._aws, self._settings.subnets)[0].zone

    def take(self, step: Step, job: Job, until: datetime, full_price: bool = False) -> None:
        """One step of the plan; one that was taken before is fine."""
        name = _name(job.run_id)
        if step == "template":
            self._create_template(job)
        elif step == "group":
            create_group(self._aws, self._group_spec(job, until, full_price))
        elif step == "end":
            tag_group(self._aws, name, {DEADLINE: as_tag(until)})
            schedule_end(self._aws, name, until)
        else:
            shape_group(self._aws, self._group_spec(job, until, full_price), job.nodes)

    def extend(self, group: Group, until: datetime) -> None:
        """Have all of it end at `until` instead. The tags first: a reaper that looks in between must not take a run that is
        driven."""
        tag_group(self._aws, group.name, {DEADLINE: as_tag(until)})
        tag(self._aws, group.instances, {DEADLINE: as_tag(until)})
        schedule_end(self._aws, group.name, until)

    def _create_template(self, job: Job) -> None:
        settings, image = self._settings, find_image(self._aws, self._settings.image)
        spec = TemplateSpec(
            name=_name(job.run_id),
            image=image.id,
            security_group=settings.security_group,
            instance_profile=settings.instance_profile,
            user_data=self._user_data(job),
            volume_gb=settings.volume_gb,
            device=image.root_device,
            tags=tags_of(job.run_id, job.detector, job.deadline),
        )
        # The token names one request: the same run asked for again after its end, or for other machines, is another one.
        token = hashlib.sha256(f"{spec!r} {job.submitted_at.isoformat()}".encode()).hexdigest()
        create_template(self._aws, spec, token)

    def _group_spec(self, job: Job, until: datetime, full_price: bool) -> GroupSpec:
        return GroupSpec(
            name=_name(job.run_id),
            template=_name(job.run_id),
            instance_types=self._settings.instance_types,
            subnets=self._settings.subnets,
            size=job.nodes,
            tags=tags_of(job.run_id, job.detector, until),
            full_price=full_price,
        )


def _name(run_id: str) -> str:
    """Of the run's group, template and scheduled end."""
    return f"nightowl-{run_id}"
