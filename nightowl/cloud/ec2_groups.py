"""Auto Scaling groups: AWS keeps so many machines of the run alive, replaces those it takes back, and ends all of them at a
time that it was told beforehand, whether or not anybody of ours is still there."""

from datetime import datetime
from typing import Any, NamedTuple

from nightowl.cloud.ec2_errors import AwsRefused
from nightowl.cloud.ec2_session import Aws
from nightowl.cloud.ec2_tags import Tags, as_tag, filters, from_aws

SERVICE = "autoscaling"


class GroupSpec(NamedTuple):
    """A group to be had. All of its machines are spot, or with `full_price` none."""

    name: str
    template: str
    instance_types: tuple[str, ...]
    subnets: tuple[str, ...]
    size: int
    tags: Tags
    full_price: bool = False


class Group(NamedTuple):
    """A group that is there. `ending`: its deletion has begun, and cannot be taken back."""

    name: str
    most: int
    desired: int
    full_price: bool
    ending: bool
    instances: tuple[str, ...]
    tags: dict[str, str]


class Activity(NamedTuple):
    """A launch or an end that the group tried; `message` says why a failed one failed."""

    at: datetime
    failed: bool
    message: str


def create_group(aws: Aws, spec: GroupSpec) -> None:
    """Have the group there, with no machine. One of that name that is there already is left as it is."""
    tags = [_tag(spec.name, key, value) for key, value in spec.tags.items()]
    arguments = _shape(spec) | {"MinSize": 0, "MaxSize": spec.size, "DesiredCapacity": 0, "Tags": tags}
    try:
        aws.call(SERVICE, "CreateAutoScalingGroup", **arguments)
    except AwsRefused as refused:
        if not refused.code.startswith("AlreadyExists"):
            raise


def shape_group(aws: Aws, spec: GroupSpec, desired: int) -> None:
    """Have so many machines of that kind in it."""
    sizes = {"MinSize": 0, "MaxSize": spec.size, "DesiredCapacity": desired}
    aws.call(SERVICE, "UpdateAutoScalingGroup", **_shape(spec), **sizes)


def delete_group(aws: Aws, name: str) -> None:
    """Have the group end its machines and itself."""
    try:
        aws.call(SERVICE, "DeleteAutoScalingGroup", AutoScalingGroupName=name, ForceDelete=True)
    except AwsRefused as refused:
        if "not found" not in str(refused):
            raise


def groups_with(aws: Aws, tags: Tags) -> list[Group]:
    """Every group that carries `tags`."""
    rows = aws.pages(SERVICE, "DescribeAutoScalingGroups", "AutoScalingGroups", Filters=filters(tags))
    return [_group(row) for row in rows]


def schedule_end(aws: Aws, name: str, at: datetime) -> None:
    """Have AWS take all machines from the group at that time: in place of the time told before."""
    sizes = {"MinSize": 0, "MaxSize": 0, "DesiredCapacity": 0}
    aws.call(
        SERVICE,
        "PutScheduledUpdateGroupAction",
        AutoScalingGroupName=name,
        ScheduledActionName=name,
        StartTime=as_tag(at),
        **sizes,
    )


def scheduled_end(aws: Aws, name: str) -> datetime | None:
    """When AWS will do so; None when nothing is scheduled, or it has done so."""
    rows = aws.pages(
        SERVICE,
        "DescribeScheduledActions",
        "ScheduledUpdateGroupActions",
        AutoScalingGroupName=name,
        ScheduledActionNames=[name],
    )
    found: datetime | None = next((row.get("StartTime") for row in rows), None)
    return found


def tag_group(aws: Aws, name: str, tags: Tags) -> None:
    """Have `tags` on the group, and on what it starts from now on."""
    aws.call(SERVICE, "CreateOrUpdateTags", Tags=[_tag(name, key, value) for key, value in tags.items()])


def activities(aws: Aws, name: str, most: int = 20) -> list[Activity]:
    """What the group tried last, newest first."""
    answer = aws.call(SERVICE, "DescribeScalingActivities", AutoScalingGroupName=name, MaxRecords=most)
    return [
        Activity(row["StartTime"], row.get("StatusCode") in ("Failed", "Cancelled"), row.get("StatusMessage", ""))
        for row in answer.get("Activities", [])
    ]


def _shape(spec: GroupSpec) -> dict[str, Any]:
    return {
        "AutoScalingGroupName": spec.name,
        "VPCZoneIdentifier": ",".join(spec.subnets),
        "CapacityRebalance": False,  # it would restart a training on a mere risk
        "MixedInstancesPolicy": {
            "LaunchTemplate": {
                "LaunchTemplateSpecification": {"LaunchTemplateName": spec.template, "Version": "$Latest"},
                "Overrides": [{"InstanceType": kind} for kind in spec.instance_types],
            },
            "InstancesDistribution": {
                "OnDemandBaseCapacity": 0,
                "OnDemandPercentageAboveBaseCapacity": 100 if spec.full_price else 0,
                "OnDemandAllocationStrategy": "lowest-price",
                "SpotAllocationStrategy": "price-capacity-optimized",
            },
        },
    }


def _group(row: dict[str, Any]) -> Group:
    distribution = row.get("MixedInstancesPolicy", {}).get("InstancesDistribution", {})
    return Group(
        name=row["AutoScalingGroupName"],
        most=row["MaxSize"],
        desired=row["DesiredCapacity"],
        full_price=distribution.get("OnDemandPercentageAboveBaseCapacity", 100) > 0,
        ending=bool(row.get("Status")),
        instances=tuple(each["InstanceId"] for each in row.get("Instances", [])),
        tags=from_aws(row.get("Tags")),
    )


def _tag(group: str, key: str, value: str) -> dict[str, Any]:
    return {
        "ResourceId": group,
        "ResourceType": "auto-scaling-group",
        "Key": key,
        "Value": value,
        "PropagateAtLaunch": True,
    }
