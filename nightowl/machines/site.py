"""Where the nodes of a night's run are: what they reach there, what they are told, and the engine that has them run."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from nightowl.cloud.bucket import Bucket
from nightowl.machines.engine import Engine
from nightowl.machines.job import Environment
from nightowl.machines.price import Prices


@dataclass(frozen=True)
class Terms:
    """How many nodes a run has, what they run in, and what ends it. `stop_at`: aware, when all work is to stop anyway."""

    environment: Environment
    nodes: int
    min_nodes: int
    nproc: int
    max_hours: float
    stall_minutes: float
    heartbeat_seconds: float
    heartbeat_old_seconds: float
    stop_at: datetime | None = None

    def deadline(self, now: datetime) -> datetime:
        """The hard end of a run that is asked for now."""
        end = now + timedelta(hours=self.max_hours)
        return end if self.stop_at is None else min(end, self.stop_at)


class Site(Protocol):
    """One kind of place, as the settings describe it."""

    @property
    def poll_seconds(self) -> float:
        """How often whoever drives a run looks at it."""

    @property
    def terms(self) -> Terms: ...

    def check(self, root: Path, detector: str, source: str) -> None:
        """Before anything is begun: could nodes read `source`, the data of `detector`, and share what they make with the
        checkout at `root`? Raises SettingsError, DataError: when not, with what to do."""

    def source(self, root: Path, detector: str, source: str) -> str:
        """What nodes call that source. Raises DataError for what they cannot read."""

    def told(self, detector: str, source: str) -> dict[str, str]:
        """NIGHTOWL_* for the stages on a node; `source` as nodes call it."""

    def dvc_config(self, root: Path, tree: Path) -> bytes:
        """DVC's configuration for a node: of the checkout at `root`, whose night runs in `tree`. Raises DataError."""

    def boards(self) -> Bucket:
        """The boards of runs. Raises RemoteError: it cannot be reached."""

    def engine(self) -> Engine:
        """Raises RemoteError: it cannot be reached; nothing is begun."""

    def prices(self, types: Iterable[str], since: datetime) -> Prices:
        """What machines of these types cost since then; what is not known is left out."""
