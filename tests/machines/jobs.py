"""Jobs and heartbeats for tests."""

from datetime import UTC, datetime, timedelta

from nightowl.machines.job import Environment, Job
from nightowl.machines.records import Generation, Member, NodeBeat

NOW = datetime(2026, 7, 1, 2, 0, tzinfo=UTC)
RUN = "demo-0123456789abcdef"


def a_job(**changes: object) -> Job:
    values = {
        "run_id": RUN,
        "detector": "demo",
        "stages": ("prepare", "train"),
        "code_commit": "c" * 40,
        "code_sha256": "a" * 64,
        "lock_sha256": "b" * 64,
        "environment": Environment(),
        "settings": {},
        "source": "s3://data/demo",
        "deadline": NOW + timedelta(hours=12),
        "submitted_at": NOW,
    }
    return Job(**{**values, **changes})  # type: ignore[arg-type]


def a_generation(number: int, *instances: str) -> Generation:
    members = tuple(
        Member(instance=name, rank=rank, address=f"10.0.0.{rank}") for rank, name in enumerate(instances or ("i-1",))
    )
    return Generation(number=number, members=members, port=29500, opened_at=NOW, reason="first")


def a_beat(instance: str = "i-1", **changes: object) -> NodeBeat:
    values = {
        "instance": instance,
        "address": "10.0.0.1",
        "num_gpus": 0,
        "instance_type": "t",
        "zone": "z",
        "lifecycle": "spot",
        "state": "ready",
        "at": NOW,
    }
    return NodeBeat(**{**values, **changes})  # type: ignore[arg-type]
