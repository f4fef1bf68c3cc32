"""Settings of rented machines, and of runs on this one: where they are, how many, and when they must be gone. They change no
result and are not hashed.

In settings.toml they are the tables `[machines]` and `[detached]`; as variables `NIGHTOWL_MACHINES__REGION=eu-central-1`.
"""

from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

EnvironmentKind = Literal["wheel", "container", "baked"]
Whole = Annotated[int, Field(ge=1, le=64)]


class DetachedSettings(BaseModel):
    """Runs of this machine that outlive the night that asked for them: what ends them, come what may."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    max_hours: Annotated[float, Field(gt=0, le=720)] = Field(
        48.0, description="a run that is not done by then saves and ends; asked for again, it goes on"
    )
    stall_minutes: Annotated[float, Field(ge=1)] = Field(
        60.0, description="a training that commits no step for so long ends, and its run with it"
    )


class MachineSettings(BaseModel):
    """Machines in one region of AWS. Several nodes are of one type and in one zone: they exchange gradients every step."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")] = Field(description="of AWS, e.g. eu-central-1")
    board: str = Field(
        pattern=r"^s3://[^/]+/.*[^/]$", description="s3://BUCKET/PREFIX through which orchestrator and nodes speak"
    )
    instance_types: Annotated[tuple[str, ...], Field(min_length=1, max_length=40)] = Field(
        description="kinds of machine that will do, best first; AWS takes the one with most spare capacity at a fair price"
    )
    subnets: Annotated[tuple[str, ...], Field(min_length=1)] = Field(description="subnet-…; one a zone, one for several nodes")
    security_group: str = Field(pattern=r"^sg-\w+$", description="admits nothing but itself")
    instance_profile: str = Field(min_length=1, description="name of the instance profile whose role the nodes have")
    image: str = Field(
        pattern=r"^(/[\w./-]+|ami-\w+)$", description="machine image: the name of an SSM parameter that holds it, or ami-…"
    )
    nodes: Whole = Field(1, description="machines that train together")
    min_nodes: Whole | None = Field(None, description="with how many it goes on when others are gone; default: all of them")
    nproc: Annotated[int, Field(ge=0, le=64)] = Field(0, description="ranks a node; 0: one a GPU")
    max_hours: Annotated[float, Field(gt=0, le=168)] = Field(
        12.0, description="after this the machines are gone, come what may"
    )
    lease_minutes: Annotated[float, Field(ge=5, le=1440)] = Field(
        30.0, description="so long machines outlive an orchestrator that died; renewed while it lives, never past max_hours"
    )
    stall_minutes: Annotated[float, Field(ge=1)] = Field(30.0, description="a node without a committed step for so long leaves")
    done_by: str | None = Field(
        None, pattern=r"^([01]\d|2[0-3]):[0-5]\d$", description="local time HH:MM at which the result is wanted"
    )
    on_demand: Literal["never", "near_deadline"] = Field(
        "never", description="may machines at full price be taken when spot would miss done_by?"
    )
    environment: EnvironmentKind = Field("wheel", description="what a node runs our code in")
    container: str | None = Field(None, description="image with its digest: NAME@sha256:…; for environment container")
    python: PurePosixPath | None = Field(None, description="interpreter in the machine image; for environment baked")
    cost_cap_usd_per_hour: Annotated[float, Field(gt=0)] | None = Field(
        None, description="nothing starts when all nodes together would cost more now; default: no cap"
    )
    volume_gb: Annotated[int, Field(ge=8, le=16384)] = Field(200, description="root volume of a node, in GB")
    heartbeat_seconds: Annotated[float, Field(gt=0)] = Field(10.0, description="time between two signs of life of a node")
    heartbeat_old_seconds: Annotated[float, Field(gt=0)] = Field(60.0, description="a node silent for longer counts as lost")
    endpoint_ec2: str | None = Field(None, description="a server that speaks EC2, for tests; default: AWS itself")

    @property
    def fewest_nodes(self) -> int:
        """With how many nodes a training goes on."""
        return self.min_nodes or self.nodes

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        faults = [
            (self.nodes > 1 and len(self.instance_types) > 1, "nodes > 1 needs one entry in instance_types: one type"),
            (self.nodes > 1 and len(self.subnets) > 1, "nodes > 1 needs one entry in subnets: one zone"),
            (self.fewest_nodes > self.nodes, f"min_nodes must be <= nodes ({self.nodes})"),
            (self.on_demand != "never" and not self.done_by, 'on_demand = "near_deadline" needs done_by'),
            (self.environment == "baked" and not self.python, 'environment = "baked" needs python'),
            (self.environment == "container" and not _has_digest(self.container), "container must be NAME@sha256:DIGEST"),
            (self.lease_minutes > self.max_hours * 60, "lease_minutes must be <= max_hours * 60"),
            (self.heartbeat_old_seconds < 3 * self.heartbeat_seconds, "heartbeat_old_seconds must be >= 3 * heartbeat_seconds"),
        ]
        wrong = [what for is_so, what in faults if is_so]
        if wrong:
            raise ValueError("; ".join(wrong))
        return self


def _has_digest(container: str | None) -> bool:
    name, _, digest = (container or "").partition("@sha256:")
    return bool(name) and len(digest) == 64 and set(digest) <= set("0123456789abcdef")
