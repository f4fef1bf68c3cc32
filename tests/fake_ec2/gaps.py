"""What moto's Auto Scaling lacks and ours needs: capacity that runs out, spot members, actions that fire when they are due,
activities that say what went wrong.

moto makes every member of a group in one place, which is replaced here for the accounts of fake EC2s that are open.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from unittest import mock
from uuid import uuid4

from moto.autoscaling.models import ASG_NAME_TAG, FakeAutoScalingGroup, InstanceState, autoscaling_backends
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends

NO_CAPACITY = (
    "We currently do not have sufficient {type} capacity in the Availability Zone you requested ({zone}). Our system will be "
    "working on provisioning additional capacity. Launching EC2 instance failed."
)


@dataclass
class Market:
    """What there is to be had: `limits` holds how many instances of a type may run at once; a type without one has no end."""

    account: str
    region: str
    limits: dict[str, int] = field(default_factory=dict)
    activities: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def ec2(self) -> Any:
        return ec2_backends[self.account][self.region]

    @property
    def autoscaling(self) -> Any:
        return autoscaling_backends[self.account][self.region]

    def running(self) -> list[Any]:
        """moto's instances that run now."""
        reservations = self.ec2.reservations.values()
        return [each for reservation in reservations for each in reservation.instances if each.state == "running"]

    def has(self, instance_type: str, number: int = 1) -> bool:
        """Whether so many more of a type can be had."""
        limit = self.limits.get(instance_type, self.limits.get("*"))
        used = sum(each.instance_type == instance_type or instance_type not in self.limits for each in self.running())
        return limit is None or used + number <= limit

    def grow(self, group: Any, number: int) -> None:
        """Give `group` so many more members, as far as there is capacity; what is refused becomes a failed activity."""
        for _ in range(number):
            types, zones = _types(group), group.availability_zones
            found = next((each for each in types if self.has(each)), None)
            if found is None:
                self._note(group.name, "Failed", NO_CAPACITY.format(type=types[0], zone=zones[0]))
                return
            self._add(group, found)

    def _add(self, group: Any, instance_type: str) -> None:
        template = {"LaunchTemplateId": group.ec2_launch_template.id}
        subnets = group.vpc_zone_identifier.split(",") if group.vpc_zone_identifier else [None]
        tags = {**group.get_propagated_tags(), ASG_NAME_TAG: group.name}
        made = self.ec2.run_instances(
            group.image_id,
            1,
            group.user_data,
            group.security_groups,
            instance_type=instance_type,
            tags={"instance": tags},
            launch_template=template,
            is_instance_type_default=False,
            subnet_id=subnets[0],
            placement=group.availability_zones[0],
        ).instances[0]
        made.lifecycle = "spot" if _next_is_spot(group) else None
        made.autoscaling_group = group
        group.instance_states.append(InstanceState(made))
        self._note(group.name, "Successful", f"Launching a new EC2 instance: {made.id}")

    def top_up(self) -> None:
        """What AWS does again and again: bring each group to its desired capacity."""
        for group in list(self.autoscaling.autoscaling_groups.values()):
            lacking = (group.desired_capacity or 0) - len(group.active_instances())
            if lacking > 0 and any(self.has(each) for each in _types(group)):
                self.grow(group, lacking)

    def fire_due(self, now: datetime) -> list[str]:
        """Carry out the scheduled actions whose time has come; returns their names."""
        due = [each for each in self.autoscaling.scheduled_actions.values() if start_time(each.start_time) <= now]
        for action in due:
            del self.autoscaling.scheduled_actions[action.scheduled_action_name]
            group = self.autoscaling.autoscaling_groups.get(action.auto_scaling_group_name)
            if group is not None:
                group.min_size = group.min_size if action.min_size is None else action.min_size
                group.max_size = group.max_size if action.max_size is None else action.max_size
                group.set_desired_capacity(
                    group.desired_capacity if action.desired_capacity is None else action.desired_capacity
                )
        return [each.scheduled_action_name for each in due]

    def forget_actions(self, group: str) -> None:
        """A group's scheduled actions go with it."""
        actions = self.autoscaling.scheduled_actions
        for name in [each.scheduled_action_name for each in actions.values() if each.auto_scaling_group_name == group]:
            del actions[name]

    def _note(self, group: str, status: str, message: str) -> None:
        now = datetime.now(UTC)
        self.activities.setdefault(group, []).insert(
            0,
            {
                "ActivityId": str(uuid4()),
                "AutoScalingGroupName": group,
                "Description": "Launching a new EC2 instance",
                "Cause": "a difference between desired and actual capacity",
                "StartTime": now,
                "EndTime": now,
                "StatusCode": status,
                "StatusMessage": message,
                "Progress": 100,
            },
        )


@contextmanager
def filled(market: Market) -> Iterator[None]:
    """moto with the gaps filled for the account of `market`, for the duration of the block."""
    grow, activities = FakeAutoScalingGroup.replace_autoscaling_group_instances, AutoScalingResponse.describe_scaling_activities

    def replace(group: Any, count_needed: int, propagated_tags: dict[str, str]) -> None:
        if group.autoscaling_backend.account_id == market.account:
            market.grow(group, count_needed)
        else:
            grow(group, count_needed, propagated_tags)

    def describe(response: Any) -> Any:
        if response.current_account != market.account:
            return activities(response)
        name = response._get_param("AutoScalingGroupName")
        return ActionResult({"Activities": market.activities.get(name, [])[:100]})

    with (
        mock.patch.object(FakeAutoScalingGroup, "replace_autoscaling_group_instances", replace),
        mock.patch.object(AutoScalingResponse, "describe_scaling_activities", describe),
    ):
        yield


def start_time(given: Any) -> datetime:
    """The time of a scheduled action, which moto keeps as it came."""
    moment = given if isinstance(given, datetime) else datetime.fromisoformat(str(given).replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def template_data(market: Market, instance: Any) -> dict[str, Any]:
    """The launch template that an instance was made of; empty for none."""
    identifier = next((tag["value"] for tag in instance.get_tags() if tag["key"] == "aws:ec2launchtemplate:id"), None)
    if identifier is None:
        return {}
    data: dict[str, Any] = market.ec2._get_template_from_args({"LaunchTemplateId": identifier}).data
    return data


def _types(group: Any) -> list[str]:
    overrides = ((group.mixed_instances_policy or {}).get("LaunchTemplate") or {}).get("Overrides") or []
    return [each["InstanceType"] for each in overrides if "InstanceType" in each] or [group.instance_type]


def _next_is_spot(group: Any) -> bool:
    policy = (group.mixed_instances_policy or {}).get("InstancesDistribution")
    if not policy:
        return False
    base = int(policy.get("OnDemandBaseCapacity") or 0)
    above = policy.get("OnDemandPercentageAboveBaseCapacity")
    on_demand = sum(state.instance.lifecycle != "spot" for state in group.instance_states)
    return on_demand >= base and int(100 if above is None else above) < 100
