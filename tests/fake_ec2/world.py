"""What must be there before machines can be rented: a bucket, a network, a profile; and the settings that name them."""

import json
import sys
from dataclasses import dataclass
from typing import Any

from nightowl.machine_settings import MachineSettings
from nightowl.settings import Settings
from tests.fake_ec2.cloud import REGION, ROLE, FakeEC2

IMAGE = "ami-12c6146b"  # one that moto has
TYPE = "g5.xlarge"


@dataclass(frozen=True)
class World:
    """An account in which nights can be sent to machines. Bucket names are unique across accounts, as in AWS."""

    cloud: FakeEC2
    bucket: str
    subnet: str
    security_group: str

    @property
    def board(self) -> str:
        return f"s3://{self.bucket}/nightowl"

    def machines(self, **changes: Any) -> dict[str, Any]:
        """The table [machines]. Nodes run this very interpreter."""
        return {
            "region": REGION,
            "board": self.board,
            "instance_types": [TYPE],
            "subnets": [self.subnet],
            "security_group": self.security_group,
            "instance_profile": ROLE,
            "image": IMAGE,
            "environment": "baked",
            "python": sys.executable,
            "nproc": 1,
            "max_hours": 2,
            "lease_minutes": 5,
            "heartbeat_seconds": 2,
            "heartbeat_old_seconds": 45,  # all machines share the two cores of this one, and may be slow to speak
            "endpoint_ec2": self.cloud.endpoint,
            **changes,
        }

    def settings(self, **changes: Any) -> Settings:
        machines = MachineSettings.model_validate_json(json.dumps(self.machines(**changes)))
        return Settings(engine="ec2", s3_endpoint=self.cloud.endpoint, machines=machines)


def a_world(cloud: FakeEC2) -> World:
    """Make it all, in an account that has nothing yet."""
    bucket = f"nightowl-{cloud.market.account}"
    cloud.client("s3").create_bucket(Bucket=bucket)
    ec2, iam = cloud.client("ec2"), cloud.client("iam")
    subnet = ec2.describe_subnets()["Subnets"][0]
    group = ec2.create_security_group(GroupName="nodes", Description="admits itself", VpcId=subnet["VpcId"])["GroupId"]
    iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument="{}")
    iam.create_instance_profile(InstanceProfileName=ROLE)
    iam.add_role_to_instance_profile(InstanceProfileName=ROLE, RoleName=ROLE)
    return World(cloud, bucket, subnet["SubnetId"], group)


def settings_text(world: World) -> str:
    """The same machines as settings.toml."""
    return f'engine = "ec2"\ns3_endpoint = "{world.cloud.endpoint}"\nmachines = {_toml(world.machines())}\n'


def _toml(table: dict[str, object]) -> str:
    return "{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items()) + "}"
