import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nightowl.checkpoint.commits import Moment
from nightowl.checkpoint.identity import Identity
from nightowl.checkpoint.plan import Keep
from nightowl.checkpoint.run import Run
from nightowl.checkpoint.serialise import State
from nightowl.cloud.bucket import Bucket, Content, FolderBucket, StoredObject

DEFAULT = Keep()
IDENTITY = Identity(
    dataset_sha256="d" * 64,
    params={"train.lr0": "0.01", "train.epochs": "3"},
    base={"name": '"yolo11n.yaml"'},
    code={"nightowl/training/loop.py": "c" * 64},
    libraries={"torch": "2.14.1"},
)


def a_state(step: int) -> State:
    return {"step": step, "model": {"weight": torch.full((64, 64), float(step))}}


def at(step: int, **changes: object) -> Moment:
    return Moment.model_validate({"step": step, "epoch": 0, "reason": "time"} | changes)


def commit(run: Run, step: int, **changes: object) -> None:
    run.commit(at(step, **changes), a_state(step))


def step_of(run: Run) -> int | None:
    """The step that `run` would go on from, as its state says it."""
    found = run.newest()
    return None if found is None else int(found.state["step"])


Opened = Callable[..., Run]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def opened(tmp_path: Path, said: list[str]) -> Opened:
    """Opens the run in `tmp_path/run` as a process that starts would."""

    def open_run(mirror: Bucket | None = None, identity: Identity = IDENTITY, keep: Keep = DEFAULT, local: str = "run") -> Run:
        return Run(FolderBucket(tmp_path / local), mirror, identity, keep, said.append)

    return open_run


class Elsewhere:
    """A bucket that can be gone, or wait: the twin of an S3 that fails."""

    def __init__(self, bucket: FolderBucket) -> None:
        self._bucket = bucket
        self.fault: Exception | None = None
        self.open = threading.Event()
        self.open.set()
        self.num_calls = 0

    @property
    def url(self) -> str:
        return "s3://checkpoints/run/"

    def under(self, prefix: str) -> Bucket:
        raise NotImplementedError

    def _there(self) -> FolderBucket:
        self.num_calls += 1
        self.open.wait()
        if self.fault is not None:
            raise self.fault
        return self._bucket

    def put(self, key: str, content: Content) -> None:
        self._there().put(key, content)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        return self._there().put_if_absent(key, content)

    def get(self, key: str) -> bytes:
        return self._there().get(key)

    def list(self, prefix: str = "") -> list[StoredObject]:
        return self._there().list(prefix)

    def delete(self, key: str) -> None:
        self._there().delete(key)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    return Elsewhere(FolderBucket(tmp_path / "elsewhere"))
