"""Rented machines as a site: they reach addresses and no folder of ours, and speak with us through a board in S3."""

import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from nightowl.cloud.bucket import Bucket
from nightowl.cloud.dvc_config import read_config
from nightowl.cloud.ec2_session import Aws
from nightowl.machine_settings import MachineSettings
from nightowl.machines.board import board_bucket
from nightowl.machines.bootstrap import user_data
from nightowl.machines.engine import Engine
from nightowl.machines.findings import insist
from nightowl.machines.job import Environment, Job
from nightowl.machines.preflight import preflight
from nightowl.machines.price import Prices, read_prices
from nightowl.machines.reach import cache_config, checkpoints_there, machines_of, settings_there, source_there
from nightowl.machines.site import Terms
from nightowl.machines.spot import SpotEngine
from nightowl.settings import Settings


class RentedMachines:
    """The machines that the settings name; their engine waits for AWS by `sleep`. Raises SettingsError when nobody said
    where."""

    poll_seconds = 10.0

    def __init__(self, settings: Settings, sleep: Callable[[float], object] = time.sleep) -> None:
        self._settings, self._machines, self._sleep = settings, machines_of(settings), sleep
        self._aws = Aws(self._machines.region, self._machines.endpoint_ec2)

    @property
    def terms(self) -> Terms:
        machines = self._machines
        return Terms(
            environment=_environment(machines),
            nodes=machines.nodes,
            min_nodes=machines.fewest_nodes,
            nproc=machines.nproc,
            max_hours=machines.max_hours,
            stall_minutes=machines.stall_minutes,
            heartbeat_seconds=machines.heartbeat_seconds,
            heartbeat_old_seconds=machines.heartbeat_old_seconds,
        )

    def check(self, root: Path, detector: str, source: str) -> None:
        cache_config(read_config(root))
        source_there(root, detector, source)

    def source(self, root: Path, detector: str, source: str) -> str:
        return source_there(root, detector, source)

    def told(self, detector: str, source: str) -> dict[str, str]:
        return settings_there(self._settings, detector, source)

    def dvc_config(self, root: Path, tree: Path) -> bytes:
        return cache_config(read_config(root))

    def boards(self) -> Bucket:
        return board_bucket(self._machines.board, self._settings.s3_endpoint)

    def engine(self) -> Engine:
        return SpotEngine(self._machines, self._aws, self.boards(), self._boots, self._check, sleep=self._sleep)

    def prices(self, types: Iterable[str], since: datetime) -> Prices:
        return read_prices(self._aws, types, since)

    def _boots(self, job: Job) -> str:
        return user_data(job, self._machines.board, self._machines.region, self._settings.s3_endpoint)

    def _check(self) -> None:
        """Raises what would stand in the way; a stand-in for AWS has no quotas, prices and rights to look at."""
        if self._machines.endpoint_ec2 is None:
            places = {"CHECKPOINTS": checkpoints_there(self._settings, self._machines)}
            insist(preflight(self._machines, self._aws, self._settings.s3_endpoint, places))


def _environment(machines: MachineSettings) -> Environment:
    python = str(machines.python) if machines.python else None
    return Environment(kind=machines.environment, container=machines.container, python=python)
