"""An AWS account in moto, made stricter where AWS is: a group's name is taken once, and scheduled actions come about."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import boto3
import pytest
from moto import mock_aws
from moto.autoscaling.exceptions import AutoscalingClientError
from moto.autoscaling.models import AutoScalingBackend, autoscaling_backends
from moto.ec2.models import ec2_backends

from nightowl.cloud.bucket import FolderBucket
from nightowl.cloud.ec2_session import Aws
from nightowl.cloud.retry import RetryPolicy
from nightowl.machine_settings import MachineSettings
from nightowl.machines.job import Environment, Job
from nightowl.machines.spot import SpotEngine

REGION, ACCOUNT, RUN = "eu-central-1", "123456789012", "line-0123456789abcdef"
HASTY = RetryPolicy(attempts=3, first_seconds=0.001, longest_seconds=0.002)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
TAGGED = {"nightowl:project": "nightowl", "nightowl:run": RUN}


class Died(BaseException):
    """The orchestrator is killed here."""


@dataclass
class Fuse:
    """Kills before the n-th thing that the orchestrator changes outside; 0: never. To be killed before it looks at something
    is to be killed before the next change: what is left behind is the same."""

    at: int = 0
    count: int = 0
    die: Callable[[], object] | None = None
    seen: list[str] = field(default_factory=list)

    def step(self, what: str) -> None:
        self.seen.append(what)
        if ":Describe" in what or ":Get" in what:
            return
        self.count += 1
        if self.count == self.at:
            if self.die:
                self.die()
            raise Died(what)


class FusedAws(Aws):
    """`Aws` whose every call is a step. Clients are kept between tests: to make one takes longer than all that is asked."""

    kept: ClassVar[dict[str, Any]] = {}

    def __init__(self, fuse: Fuse) -> None:
        super().__init__(REGION, policy=HASTY)
        self.fuse, self._clients = fuse, self.kept

    def call(self, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        self.fuse.step(f"{service}:{operation}")
        return super().call(service, operation, **arguments)


class FusedBucket(FolderBucket):
    def __init__(self, root: Path, fuse: Fuse) -> None:
        super().__init__(root)
        self.fuse = fuse

    def under(self, prefix: str) -> "FusedBucket":
        return FusedBucket(self.path(prefix), self.fuse)

    def put(self, key: str, content: Any) -> None:
        self.fuse.step(f"put {key}")
        super().put(key, content)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        self.fuse.step(f"put {key}")
        return super().put_if_absent(key, content)

    def delete(self, key: str) -> None:
        self.fuse.step(f"delete {key}")
        super().delete(key)


@dataclass
class Account:
    """What is there, as AWS counts it, and a clock that tests set."""

    settings: MachineSettings
    boards: Path
    now: datetime = NOON

    def engine(self, fuse: Fuse | None = None, **settings: Any) -> SpotEngine:
        fuse = fuse or Fuse()
        chosen = MachineSettings.model_validate({**self.settings.model_dump(), **settings})
        aws, boards = FusedAws(fuse), FusedBucket(self.boards, fuse)
        return SpotEngine(chosen, aws, boards, lambda job: f"#!/bin/bash\n# {job.run_id}\n", now=lambda: self.now, sleep=_not)

    def instances(self, run_id: str | None = None) -> list[str]:
        """Ids of machines that are not gone; of one run, or any at all."""
        wanted = [{"Name": "tag:nightowl:run", "Values": [run_id]}] if run_id else []
        rows = client("ec2").describe_instances(Filters=wanted)["Reservations"]
        found = [each for row in rows for each in row["Instances"]]
        return [each["InstanceId"] for each in found if each["State"]["Name"] not in ("terminated", "shutting-down")]

    def groups(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        return rows

    def templates(self) -> list[str]:
        rows = client("ec2").describe_launch_templates()["LaunchTemplates"]
        return [row["LaunchTemplateName"] for row in rows]

    def scheduled(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = client("autoscaling").describe_scheduled_actions()["ScheduledUpdateGroupActions"]
        return rows

    def empty(self) -> bool:
        return not (self.instances() or self.groups() or self.templates())

    def wipe(self) -> None:
        for group in self.groups():
            client("autoscaling").delete_auto_scaling_group(
                AutoScalingGroupName=group["AutoScalingGroupName"], ForceDelete=True
            )
        if left := self.instances():
            client("ec2").terminate_instances(InstanceIds=left)
        for template in self.templates():
            client("ec2").delete_launch_template(LaunchTemplateName=template)
        autoscaling_backends[ACCOUNT][REGION].scheduled_actions.clear()
        backend = ec2_backends[ACCOUNT][REGION]
        for gone in (backend.reservations, backend.volumes, backend.enis):
            gone.clear()

    def pass_time(self, span: timedelta) -> None:
        """Let AWS do what was scheduled until then."""
        self.now += span
        for row in self.scheduled():
            name, backend = row["AutoScalingGroupName"], autoscaling_backends[ACCOUNT][REGION]
            if row["StartTime"] <= self.now and name in backend.autoscaling_groups:
                group = backend.autoscaling_groups[name]
                group.min_size, group.max_size = row["MinSize"], row["MaxSize"]
                group.set_desired_capacity(row["DesiredCapacity"])
                backend.delete_scheduled_action(name, row["ScheduledActionName"])


@cache
def client(service: str) -> Any:
    return boto3.client(service, region_name=REGION)


def job(run_id: str = RUN, **changes: Any) -> Job:
    values: dict[str, Any] = {
        "run_id": run_id,
        "detector": "line",
        "stages": ("prepare", "train", "evaluate"),
        "code_commit": "c0ffee",
        "code_sha256": "1" * 64,
        "lock_sha256": "2" * 64,
        "environment": Environment(),
        "settings": {},
        "source": "s3://factory/line",
        "deadline": NOON + timedelta(hours=12),
        "submitted_at": NOON,
    }
    return Job.model_validate({**values, **changes})


@contextmanager
def renting(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """An account with what the settings name, and nothing that was rented."""
    nothing = str(root / "no-such-file")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", nothing)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", nothing)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    create = AutoScalingBackend.create_auto_scaling_group

    def once(self: AutoScalingBackend, name: str, *arguments: Any, **named: Any) -> Any:
        if name in self.autoscaling_groups:
            raise AutoscalingClientError("AlreadyExists", "AutoScalingGroup by this name already exists")
        return create(self, name, *arguments, **named)

    monkeypatch.setattr(AutoScalingBackend, "create_auto_scaling_group", once)
    with mock_aws():
        yield Account(MachineSettings.model_validate(furnish()), root / "boards")


def furnish() -> dict[str, Any]:
    """Have in moto what the returned settings name."""
    ec2, iam = client("ec2"), client("iam")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=f"{REGION}{zone}")["Subnet"]["SubnetId"]
        for n, zone in enumerate("ab")
    ]
    closed = ec2.create_security_group(GroupName="nightowl", Description="itself only", VpcId=vpc)["GroupId"]
    iam.create_role(RoleName="nightowl-node", AssumeRolePolicyDocument="{}")
    iam.create_instance_profile(InstanceProfileName="nightowl-node")
    iam.add_role_to_instance_profile(InstanceProfileName="nightowl-node", RoleName="nightowl-node")
    image = next(iter(ec2_backends[ACCOUNT][REGION].amis))  # moto has hundreds, and takes seconds to describe them
    client("ssm").put_parameter(Name="/nightowl/image", Type="String", Value=image)
    client("s3").create_bucket(Bucket="factory", CreateBucketConfiguration={"LocationConstraint": REGION})
    return {
        "region": REGION,
        "board": "s3://factory/nightowl",
        "instance_types": ["g5.xlarge", "g6.xlarge"],
        "subnets": subnets,
        "security_group": closed,
        "instance_profile": "nightowl-node",
        "image": "/nightowl/image",
    }


def _not(seconds: float) -> None:
    """Sleep without it."""
