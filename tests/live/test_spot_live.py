"""The engine on AWS itself: one small machine, for minutes, with a cap on what it may cost an hour. Never run by default.

    NIGHTOWL_LIVE_AWS=yes python -m pytest -m live tests/live

with credentials, and the settings of a checkout (NIGHTOWL_MACHINES__… or settings.toml). The machine trains nothing: it boots,
and is ended. Whatever happens, its end is scheduled with AWS, a few minutes ahead.
"""

import os
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from nightowl.cloud.ec2_instances import instances_with
from nightowl.cloud.ec2_session import Aws
from nightowl.cloud.ec2_tags import OURS, RUN
from nightowl.machine_settings import MachineSettings
from nightowl.machines.board import Board, board_bucket
from nightowl.machines.findings import insist
from nightowl.machines.job import Environment, Job
from nightowl.machines.preflight import preflight
from nightowl.machines.spot import SpotEngine
from nightowl.settings import load_settings

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.environ.get("NIGHTOWL_LIVE_AWS") != "yes", reason="rents a machine: set NIGHTOWL_LIVE_AWS=yes"),
]
CAP_USD_PER_HOUR = 0.10
TYPES = ("t3.micro", "t3a.micro", "t3.small")
WAIT = timedelta(minutes=8)


class Live(NamedTuple):
    settings: MachineSettings
    aws: Aws
    engine: SpotEngine
    job: Job


@pytest.fixture
def live() -> Iterator[Live]:
    named = load_settings(Path.cwd()).machines
    assert named is not None, "the live test needs the table [machines]"
    change = {"instance_types": TYPES, "nodes": 1, "min_nodes": None, "cost_cap_usd_per_hour": CAP_USD_PER_HOUR}
    small = {"volume_gb": 100, "lease_minutes": 10, "max_hours": 0.5, "done_by": None, "on_demand": "never"}
    settings = MachineSettings.model_validate({**named.model_dump(), **change, **small})
    aws, boards, now = Aws(settings.region), board_bucket(settings.board), datetime.now(UTC)
    insist(preflight(settings, aws))  # among it the cap
    engine = SpotEngine(settings, aws, boards, lambda job: "#!/bin/bash\nshutdown -h +15\n")
    job = Job(
        run_id=f"live-{secrets.token_hex(8)}",
        detector="live",
        stages=("nothing",),
        code_commit="none",
        code_sha256="0" * 64,
        lock_sha256="0" * 64,
        environment=Environment(),
        settings={},
        source="none",
        deadline=now + timedelta(minutes=20),
        submitted_at=now,
    )
    try:
        yield Live(settings, aws, engine, job)
    finally:
        remains = engine.tear_down(job.run_id)
        for stored in (board := Board(boards, job.run_id)).bucket.list():
            board.bucket.delete(stored.key)
        assert remains.nothing, remains


def test_a_spot_machine_comes_is_adopted_and_is_gone_again(live: Live) -> None:
    run_id = live.engine.submit(live.job)
    until = datetime.now(UTC) + WAIT
    while not (found := instances_with(live.aws, {**OURS, RUN: run_id})) and datetime.now(UTC) < until:
        print(live.engine.status(run_id).message)
        time.sleep(10)
    assert [each.lifecycle for each in found] == ["spot"], live.engine.status(run_id).message
    live.engine.submit(live.job)
    live.engine.renew(run_id)
    assert len(instances_with(live.aws, {**OURS, RUN: run_id})) == 1
    assert live.engine.tear_down(run_id).nothing
