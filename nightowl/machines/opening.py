"""The machines that settings name, as an engine."""

import time
from collections.abc import Callable

from nightowl.cloud.ec2_session import Aws
from nightowl.machines.board import board_bucket
from nightowl.machines.bootstrap import user_data
from nightowl.machines.engine import Engine
from nightowl.machines.findings import insist
from nightowl.machines.job import Job
from nightowl.machines.preflight import preflight
from nightowl.machines.reach import checkpoints_there, machines_of
from nightowl.machines.spot import SpotEngine
from nightowl.settings import Settings


def open_engine(settings: Settings, sleep: Callable[[float], object] = time.sleep) -> Engine:
    """The engine, which waits for AWS by `sleep`. Raises SettingsError, RemoteError: nobody said where, or it cannot be
    reached; nothing is begun."""
    machines = machines_of(settings)
    boards = board_bucket(machines.board, settings.s3_endpoint)
    aws = Aws(machines.region, machines.endpoint_ec2)

    def boots(job: Job) -> str:
        return user_data(job, machines.board, machines.region, settings.s3_endpoint)

    def check() -> None:
        if machines.endpoint_ec2 is None:  # a stand-in for AWS has no quotas, prices and rights to look at
            insist(preflight(machines, aws, settings.s3_endpoint, {"CHECKPOINTS": checkpoints_there(settings, machines)}))

    return SpotEngine(machines, aws, boards, boots, check, sleep=sleep)
