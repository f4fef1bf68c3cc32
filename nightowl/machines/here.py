"""This machine as a site: one node that outlives the night, with the night's own home, settings and DVC cache.

It is the rehearsal of rented machines: the same board, agent and watches, and no account of anybody is needed.
"""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from nightowl.cloud.bucket import Bucket
from nightowl.cloud.dvc_config import as_text, read_config
from nightowl.data.source import absolute_source
from nightowl.errors import SettingsError
from nightowl.machines.job import Environment
from nightowl.machines.local import LocalEngine
from nightowl.machines.price import Prices
from nightowl.machines.site import Terms
from nightowl.settings import Settings, as_environment, home_of

_HEARTBEAT_SECONDS, _OLD_SECONDS = 2.0, 60.0  # a beat costs a file; a machine that is busy may be late by far
_NOT_TOLD = ("engine", "machines", "detached", "stop_at", "nproc", "nnodes", "node_rank", "rendezvous")
"""Settings that the job itself carries, or that are of no meaning on a node."""


class ThisMachine:
    """Runs lie in the home, under `detached`. `settings`: as loaded for a checkout."""

    poll_seconds = 2.0

    def __init__(self, settings: Settings) -> None:
        self._settings, self._folder = settings, home_of(settings) / "detached"
        self._engine = LocalEngine(self._folder)

    @property
    def terms(self) -> Terms:
        return Terms(
            environment=Environment(kind="here"),
            nodes=1,
            min_nodes=1,
            nproc=self._settings.nproc,
            max_hours=self._settings.detached.max_hours,
            stall_minutes=self._settings.detached.stall_minutes,
            heartbeat_seconds=_HEARTBEAT_SECONDS,
            heartbeat_old_seconds=_OLD_SECONDS,
            stop_at=self._settings.stop_at,
        )

    def check(self, root: Path, detector: str, source: str) -> None:
        if self._settings.nnodes > 1:
            raise SettingsError(
                f'engine: "detached" trains on this machine alone, and nnodes is {self._settings.nnodes}: take nnodes away, or '
                'use the engine "local"'
            )

    def source(self, root: Path, detector: str, source: str) -> str:
        return absolute_source(source)

    def told(self, detector: str, source: str) -> dict[str, str]:
        told = as_environment(self._settings.model_copy(update={"sources": {detector: source}}))
        return {name: value for name, value in told.items() if name not in {f"NIGHTOWL_{each.upper()}" for each in _NOT_TOLD}}

    def dvc_config(self, root: Path, tree: Path) -> bytes:
        """All that is in force in the night's tree, the cache and credentials too; but a node's tree is none of git's."""
        sections = {name: dict(options) for name, options in read_config(tree).sections.items()}
        sections["core"] = {**sections.get("core", {}), "no_scm": "true"}
        return as_text(sections).encode()

    def boards(self) -> Bucket:
        """Nobody else may look: with its code comes whatever DVC's configuration holds."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._engine.bucket

    def engine(self) -> LocalEngine:
        return self._engine

    def prices(self, types: Iterable[str], since: datetime) -> Prices:
        """None: what this machine costs, nobody said."""
        return Prices([], {})
