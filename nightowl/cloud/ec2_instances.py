"""Machines that are there and what belongs to them: found by tag, ended by id."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from nightowl.cloud.ec2_errors import AwsRefused
from nightowl.cloud.ec2_session import Aws, region_here
from nightowl.cloud.ec2_tags import Tags, filters, from_aws, to_aws

_THERE = ["pending", "running", "stopping", "stopped", "shutting-down"]


class Instance(NamedTuple):
    """A machine that is not gone. `lifecycle` is spot or on-demand, `launched_at` aware."""

    id: str
    type: str
    zone: str
    lifecycle: str
    state: str
    launched_at: datetime
    tags: dict[str, str]

    @property
    def costs(self) -> bool:
        """One that is being ended is not billed any more."""
        return self.state != "shutting-down"


def instances_with(aws: Aws, tags: Tags) -> list[Instance]:
    """Every machine that carries `tags` and is not gone, oldest first."""
    wanted = [*filters(tags), {"Name": "instance-state-name", "Values": _THERE}]
    rows = aws.pages("ec2", "DescribeInstances", "Reservations", Filters=wanted)
    found = [
        Instance(
            id=row["InstanceId"],
            type=row["InstanceType"],
            zone=row.get("Placement", {}).get("AvailabilityZone", ""),
            lifecycle=row.get("InstanceLifecycle", "on-demand"),
            state=row["State"]["Name"],
            launched_at=row["LaunchTime"],
            tags=from_aws(row.get("Tags")),
        )
        for reservation in rows
        for row in reservation["Instances"]
    ]
    return sorted(found, key=lambda instance: (instance.launched_at, instance.id))


def terminate(aws: Aws, ids: Sequence[str]) -> None:
    """End them. One that is gone already is fine; then the others are ended one by one."""
    if not ids:
        return
    try:
        aws.call("ec2", "TerminateInstances", InstanceIds=list(ids))
    except AwsRefused as refused:
        if refused.code != "InvalidInstanceID.NotFound":
            raise
        if len(ids) > 1:
            for each in ids:
                terminate(aws, [each])


def tag(aws: Aws, ids: Sequence[str], tags: Tags) -> None:
    """Have `tags` on those of the machines that are still there."""
    if not ids:
        return
    try:
        aws.call("ec2", "CreateTags", Resources=list(ids), Tags=to_aws(tags))
    except AwsRefused as refused:
        if refused.code != "InvalidInstanceID.NotFound":
            raise
        if len(ids) > 1:
            for each in ids:
                tag(aws, [each], tags)


def leave_group(instance_id: str, decrement: bool, endpoint: str | None = None, region: str | None = None) -> None:
    """End this machine by way of its group; with `decrement` no other is started in its place. The region comes by the AWS
    chain where it is not said.

    Raises:
        RemoteError: when AWS does not let it; then only shutting down is left.
    """
    Aws(region or region_here(), endpoint).call(
        "autoscaling",
        "TerminateInstanceInAutoScalingGroup",
        InstanceId=instance_id,
        ShouldDecrementDesiredCapacity=decrement,
    )


def volumes_with(aws: Aws, tags: Tags) -> list[tuple[str, bool]]:
    """Id of every volume that carries `tags`, and whether it is attached to nothing."""
    rows = aws.pages("ec2", "DescribeVolumes", "Volumes", Filters=filters(tags))
    return [(row["VolumeId"], row["State"] == "available") for row in rows if row["State"] not in ("deleting", "deleted")]


def interfaces_with(aws: Aws, tags: Tags) -> list[tuple[str, bool]]:
    """The same of network interfaces."""
    rows = aws.pages("ec2", "DescribeNetworkInterfaces", "NetworkInterfaces", Filters=filters(tags))
    return [(row["NetworkInterfaceId"], row["Status"] == "available") for row in rows]


def delete_volume(aws: Aws, volume: str) -> None:
    _unless_gone(aws, "DeleteVolume", VolumeId=volume)


def delete_interface(aws: Aws, interface: str) -> None:
    _unless_gone(aws, "DeleteNetworkInterface", NetworkInterfaceId=interface)


def _unless_gone(aws: Aws, operation: str, **arguments: str) -> None:
    try:
        aws.call("ec2", operation, **arguments)
    except AwsRefused as refused:
        if "NotFound" not in refused.code:
            raise
