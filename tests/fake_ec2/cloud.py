"""FakeEC2: moto's books, and an instance behind each line of them. A reconciler brings the two together, five times a second.

with FakeEC2(folder) as cloud:
    cloud.client("autoscaling").create_auto_scaling_group(...)
    cloud.wait(lambda: len(cloud.instances) == 2)
    cloud.interrupt(instance_id, seconds=5)
"""

import base64
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from unittest import mock

import boto3
from botocore.config import Config

from tests.fake_ec2.api import Api, Call, Handler
from tests.fake_ec2.gaps import Market, filled, template_data
from tests.fake_ec2.hosts import open_hosts
from tests.fake_ec2.instance import Instance
from tests.fake_ec2.metadata import Facts
from tests.fake_ec2.on_machine import listening
from tests.fake_ec2.serving import Served

REGION = "us-east-1"
ROLE = "nightowl-node"
_EVERY_SECONDS = 0.2


class FakeEC2:
    """The cloud of one account in one region, from entering the block to its end, when nothing is left of it."""

    def __init__(self, folder: Path, isolated: bool | None = None, boot_seconds: float = 0.0) -> None:
        self.folder, self.boot_seconds = folder, boot_seconds
        self.market = Market(f"{random.randrange(10**11, 10**12)}", REGION)
        self.books, self._ahead = threading.RLock(), timedelta()
        self.api = Api(self.market, self.books, self.now)
        self.instances: dict[str, Instance] = {}
        self.ended: dict[str, Instance] = {}
        self.fired: list[str] = []
        self.faults: list[str] = []
        self._isolated, self._due = isolated, {}  # type: tuple[bool | None, dict[str, float]]
        self._over, self._stack = threading.Event(), ExitStack()

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._stack.enter_context(filled(self.market))
        self._hosts = open_hosts(self._isolated)
        self._stack.callback(self._hosts.close)
        ours = listening("127.0.0.1", 0)
        self.port = ours.getsockname()[1]
        self._stack.callback(Served(self.api, ours, Handler).close)
        self._stack.callback(self._end_all)
        self._thread = threading.Thread(target=self._reconcile, name="fake-ec2", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30)
        self._stack.close()

    # What a test asks.

    @property
    def isolated(self) -> bool:
        return self._hosts.isolated

    @property
    def endpoint(self) -> str:
        """The API's address, the same for a test and inside an instance."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def calls(self) -> list[Call]:
        return self.api.calls

    def client(self, service: str) -> Any:
        """A boto3 client of this cloud, as an operator has one."""
        config = Config(retries={"total_max_attempts": 1}, connect_timeout=10, read_timeout=30)
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        return boto3.client(service, region_name=REGION, endpoint_url=self.endpoint, config=config, **keys)

    def environment(self) -> dict[str, str]:
        """Variables by which a process outside any instance speaks to this cloud."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def speaking(self) -> Any:
        """A block in which this very process has `environment`."""
        return mock.patch.dict(os.environ, self.environment())

    def now(self) -> datetime:
        """AWS's clock."""
        return datetime.now(UTC) + self._ahead

    def alive(self) -> list[str]:
        """The instances that are billed: what moto says is running, in the order of their launch."""
        with self.books:
            return [each.id for each in self.market.running()]

    def tagged(self, key: str, value: str) -> list[str]:
        """Everything that bears a tag and is not gone: instances, volumes, interfaces, templates, groups."""
        filters = [{"Name": f"tag:{key}", "Values": [value]}]
        ec2, found = self.client("ec2"), []
        states = {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}
        for reservation in ec2.describe_instances(Filters=[*filters, states])["Reservations"]:
            found += [each["InstanceId"] for each in reservation["Instances"]]
        found += [each["VolumeId"] for each in ec2.describe_volumes(Filters=filters)["Volumes"]]
        found += [each["NetworkInterfaceId"] for each in ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]]
        found += [each["LaunchTemplateName"] for each in ec2.describe_launch_templates(Filters=filters)["LaunchTemplates"]]
        for group in self.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]:
            tags = {tag["Key"]: tag["Value"] for tag in group["Tags"]}
            found += [group["AutoScalingGroupName"]] if tags.get(key) == value else []
        return found

    def wait(self, holds: Callable[[], object], seconds: float = 60.0, what: str = "") -> None:
        """Wait until `holds` says yes; fails with the consoles of the instances when time is up."""
        deadline = time.monotonic() + seconds
        while not holds():
            if self.faults or time.monotonic() > deadline:
                raise AssertionError(f"waited {seconds:.0f} s in vain {what}\n{self.consoles()}")
            time.sleep(0.1)

    def consoles(self) -> str:
        """The end of what each instance wrote."""
        every = {**self.ended, **self.instances}
        return "\n".join([*self.faults, *(f"--- {name}\n{each.console[-4000:]}" for name, each in every.items())])

    # What a test does to it.

    def interrupt(self, instance: str, seconds: float = 120.0) -> None:
        """AWS wants a spot instance back: the notice now, its end after so many seconds."""
        facts = self.instances[instance].metadata.facts
        facts.notice_at = datetime.now(UTC) + timedelta(seconds=seconds)
        self._due[instance] = time.monotonic() + seconds

    def rebalance(self, instance: str) -> None:
        """AWS thinks that a spot instance may be wanted back."""
        self.instances[instance].metadata.facts.rebalance_at = datetime.now(UTC)

    def kill(self, instance: str) -> None:
        """It ends without notice; its group replaces it."""
        with self.books:
            self.ended[instance] = self.instances[instance]
            del self.instances[instance]
        self.ended[instance].end()
        self._terminate(instance)

    def cut(self, instance: str) -> None:
        self.instances[instance].cut(connected=False)

    def mend(self, instance: str) -> None:
        self.instances[instance].cut(connected=True)

    def limit(self, instance_type: str, number: int | None) -> None:
        """No more than so many instances of a type (`*`: of all) from now on; None: no end of them."""
        with self.books:
            if number is None:
                self.market.limits.pop(instance_type, None)
            else:
                self.market.limits[instance_type] = number

    def throttle(self, action: str, times: int) -> None:
        """Refuse the next so many calls of an action."""
        self.api.throttled[action] += times

    def advance(self, seconds: float) -> None:
        """Let AWS's clock, which scheduled actions go by, be so much later."""
        self._ahead += timedelta(seconds=seconds)

    # The reconciler.

    def _reconcile(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            try:
                self._once()
            except Exception:  # noqa: BLE001  a fault of the fake must be seen in the test that waits, not end its clockwork
                self.faults.append(traceback.format_exc())
                print(self.faults[-1], file=sys.stderr)

    def _once(self) -> None:
        with self.books:
            self.fired += self.market.fire_due(self.now())
            self.market.top_up()
            running = {each.id: each for each in self.market.running()}
            gone = self.instances.keys() - running.keys()
            self.ended |= {name: self.instances.pop(name) for name in gone}
        for name in gone:
            self.ended[name].end()
        for name in running.keys() - self.instances.keys() - self.ended.keys():
            self.instances[name] = self._boot(running[name])
        for instance in list(self.instances.values()):
            instance.boot_when_due()
        for name, due in list(self._due.items()):
            if time.monotonic() >= due:
                del self._due[name]
                self._terminate(name)
        for name, instance in list(self.instances.items()):
            at = instance.shutdown_at()
            if at is not None and time.time() >= at:
                self._shut_down(name, running.get(name))

    def _boot(self, line: Any) -> Instance:
        data = template_data(self.market, line)
        shown = (data.get("MetadataOptions") or {}).get("InstanceMetadataTags") == "enabled"
        facts = Facts(
            instance=line.id,
            address=line.private_ip,
            instance_type=line.instance_type,
            zone=line.placement.zone,
            lifecycle="spot" if line.lifecycle == "spot" else "on-demand",
            image=line.image_id,
            account=self.market.account,
            user_data=_text(line.user_data or data.get("UserData")),
            role=ROLE,
            tags={tag["key"]: tag["value"] for tag in line.get_tags() if not tag["key"].startswith("aws:")} if shown else None,
        )
        host = self._hosts.host(line.id, line.private_ip)
        facts = replace(facts, address=host.address)
        return Instance(facts, host, self.folder / line.id, self.api, Handler, self.port, self.boot_seconds)

    def _terminate(self, instance: str) -> None:
        self.client("ec2").terminate_instances(InstanceIds=[instance])

    def _shut_down(self, name: str, line: Any) -> None:
        """What its template says of a shutdown from inside: end, or (AWS's default) stop and be billed for its disk."""
        behaviour = line and (
            template_data(self.market, line).get("InstanceInitiatedShutdownBehavior")
            or line.instance_initiated_shutdown_behavior
        )
        if behaviour == "terminate":
            self._terminate(name)
        elif line:
            self.client("ec2").stop_instances(InstanceIds=[name])

    def _end_all(self) -> None:
        for instance in list(self.instances.values()):
            instance.end()
        with self.books:
            self.market.autoscaling.reset()
            self.market.ec2.reset()


def _text(user_data: Any) -> str:
    """User-data as bash reads it; moto keeps a template's as it came, in base64, and an instance's in a type of its own."""
    return base64.b64decode(user_data).decode() if isinstance(user_data, str) else user_data.decode() if user_data else ""
