"""The process of a node: who it is, what it restores before it is ready, its heart, and the loop around `Node.tick`."""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from types import FrameType

from nightowl.cloud.bucket import ObjectMissing
from nightowl.cloud.dvc_config import read_config
from nightowl.cloud.metadata import Metadata, SpotWatcher
from nightowl.data.blobs import BlobStore
from nightowl.data.source import DVC
from nightowl.errors import DataError, RemoteError, UserError, WeightsError
from nightowl.machines.board import Board
from nightowl.machines.diary import Diary
from nightowl.machines.job import Job
from nightowl.machines.node import Node, Watch
from nightowl.machines.outlook import Clock, first_open
from nightowl.machines.records import Cancel, NodeBeat
from nightowl.machines.supervise import TOGETHER
from nightowl.machines.worker import StageWorker
from nightowl.notices import FileNotice
from nightowl.processes import adopt_orphans, kill_descendants
from nightowl.settings import Settings, home_of, load_settings
from nightowl.stages.workspace import Workspace

BOOTSTRAP = "bootstrap"  # what boot.py calls itself among the stages
_MAX_TICK_SECONDS = 5.0
Pull = Callable[[Settings, str, str], object]
"""Brings a remote source of a detector here, for the stages to read."""


@dataclass
class Ears:
    """What tells a node that it is to go: a signal, or the metadata service where there is one. `wish` is asked as well: it may
    know of somebody who wants the whole run to end."""

    service: Watch | None
    wish: Callable[[], object] = lambda: None
    signalled: str | None = None

    def look(self) -> str | None:
        self.wish()
        return self.signalled or (self.service.look() if self.service else None)

    def rebalance(self) -> str | None:
        return self.service.rebalance() if self.service else None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """SIGTERM and SIGINT are notices for the duration of the block."""

        def note(number: int, frame: FrameType | None) -> None:
            self.signalled = f"asked to stop ({signal.Signals(number).name})"

        before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass(frozen=True)
class Place:
    """Where a node runs: the run's code, a folder of its own, and when its machine and its environment began to be made."""

    tree: Path
    home: Path
    booted_at: datetime | None = None
    building_at: datetime | None = None


def run_node(
    board: Board, me: NodeBeat, place: Place, service: Watch | None, pull: Pull, leave: Callable[[bool], None]
) -> None:
    """Be a node of the board's run, until it leaves.

    Raises:
        UserError: there is no such run. What keeps it from becoming ready: DataError, WeightsError, RemoteError, OSError.
    """
    job = board.job()
    if job is None:
        raise UserError(f"{board.bucket.url}: no run there")
    adopt_orphans()
    clock = Clock()
    diary = Diary(board, me.instance, clock.now)
    told = settings_for(job, place)
    settings = told.model_copy(update={"spot_notices": False, "stop_notice": None})  # it listens itself
    os.environ.pop("NIGHTOWL_STOP_NOTICE", None)  # what its stages inherit
    workspace = Workspace(place.tree, job.detector, settings)
    shares = read_config(place.tree).has_remote
    worker = StageWorker(
        workspace, job.nproc or max(1, me.num_gpus), diary.say, kill_descendants, shares, lasts=job.environment.here
    )
    ears = Ears(service or _service(told, diary), partial(hear_wish, told, board, clock))
    node = Node(job, board, me, worker, ears, diary, leave, clock)
    with ears.listening(), _heart(node, diary, job.heartbeat_seconds):
        if board.end() is None:
            _account_for_boot(diary, place, clock)
            begun = clock.now()
            restore(board, job, settings, pull)
            diary.span("data", begun)
            if first_open(job, board) == TOGETHER and job.nodes > 1:
                begun = clock.now()
                worker.warm_up()
                diary.span("cache", begun, TOGETHER)
            board.forgive(BOOTSTRAP)
        node.be("ready")
        while node.tick():
            time.sleep(min(job.heartbeat_seconds / 2, _MAX_TICK_SECONDS))


def settings_for(job: Job, place: Place) -> Settings:
    """The settings of the job, with folders of this node, but for a home that the job names; they go to its stages by the
    environment."""
    request = {"NIGHTOWL_CHECKPOINT_REQUEST": str(place.home / "checkpoint.request")}
    os.environ.update({"NIGHTOWL_HOME": str(place.home / "state"), **job.settings, **request})
    settings = load_settings(place.tree)
    source = settings.sources.get(job.detector, job.source)
    if source.startswith(DVC):
        source = f"{DVC}{place.tree / source.removeprefix(DVC)}"
    return settings.model_copy(update={"sources": {job.detector: source}})


def hear_wish(settings: Settings, board: Board, clock: Clock) -> None:
    """The file `stop_notice` asks for the end of the run: another node would find it there as well."""
    said = FileNotice(settings.stop_notice).look() if settings.stop_notice else None
    if said is not None:
        with suppress(RemoteError, OSError):  # asked again at the next look
            board.put_cancel(Cancel(by=said, at=clock.now()))


def restore(board: Board, job: Job, settings: Settings, pull: Pull) -> None:
    """Have what the stages read and git does not hold: weights by their digest, and the data.

    Raises:
        WeightsError: the board lacks a blob, or it is another. DataError, RemoteError: the data cannot be had.
    """
    store = BlobStore(home_of(settings) / "blobs")
    for blob in job.blobs:
        if store.has(blob.sha256):
            continue
        try:
            content = board.blob(blob)
        except ObjectMissing:
            raise WeightsError(
                f"{board.bucket.url}blobs/{blob.sha256}: not there; the run was not put on its board whole"
            ) from None
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            found = store.put(Path(file.name))
        if found != blob.sha256:
            store.path_of(found).unlink()
            raise WeightsError(f"{board.bucket.url}blobs/{blob.sha256}: altered: its sha256 is {found}")
    source = settings.sources[job.detector]
    if "://" in source or source.startswith(DVC):
        if not job.environment.here:  # the night has pulled it, and pinned what the stages are to read
            pull(settings, job.detector, source)
    elif not Path(source).is_dir():
        raise DataError(f"{job.detector}: {source}: no such folder on this node")


def _service(settings: Settings, diary: Diary) -> Watch | None:
    return SpotWatcher(Metadata(), diary.say) if settings.spot_notices else None


def _account_for_boot(diary: Diary, place: Place, clock: Clock) -> None:
    if place.building_at is not None:
        if place.booted_at is not None:
            diary.span("booted", place.booted_at)
        diary.span("environment", place.building_at)


@contextmanager
def _heart(node: Node, diary: Diary, every_seconds: float) -> Iterator[None]:
    over = threading.Event()

    def beat() -> None:
        while not over.is_set():
            node.beat()
            diary.try_flush()
            over.wait(every_seconds)

    thread = threading.Thread(target=beat, name="heart", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(every_seconds)
        if not node.unheard:
            diary.try_flush()
