"""Where a training lives while it lasts: one folder for each set of inputs, with one writer at a time.

Its key covers all that decides the result, the code included: what was begun by another version is not continued by this
one. A finished training stays until the detector trains anew, so that a failure after it costs no training.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from nightowl.errors import StageFailed
from nightowl.files import canonical_json, sha256_bytes, sha256_file
from nightowl.params import Params
from nightowl.training.base import BaseWeights
from nightowl.training.commits import is_finished

_ABANDONED_SECONDS = 30 * 24 * 3600
_LIBRARIES = ("numpy", "opencv-python-headless", "torch", "ultralytics")


def run_key(dataset_sha256: str, params: Params, base: BaseWeights, code: Iterable[Path]) -> str:
    """SHA-256 over everything that decides a training's result; `code` are the files and folders whose source it runs."""
    parts = {
        "dataset": dataset_sha256,
        "image_size": params.prepare.image_size,
        "train": params.train.model_dump(mode="json"),
        "base": base.model_dump(mode="json"),
        "code": [sha256_file(file) for file in _sources(code)],
        "libraries": [version(name) for name in _LIBRARIES],
    }
    return sha256_bytes(canonical_json(parts).encode())


@contextmanager
def training_run(checkpoints: Path, key: str) -> Iterator[Path]:
    """Yield the folder of the run `key` among a detector's `checkpoints`, for this process alone; old runs are removed.

    Raises:
        StageFailed: when another process trains it now.
    """
    run = checkpoints / key
    run.mkdir(parents=True, exist_ok=True)
    with _held(run) as held:
        if not held:
            raise StageFailed(f"{run}: this very training is running in another process; wait for it, or stop it first")
        for other in checkpoints.iterdir():
            if other != run and other.is_dir():
                _remove_if_over(other)
        yield run


def _remove_if_over(run: Path) -> None:
    """Remove a run that is finished, or that nobody has touched for a month, unless a process holds it."""
    with _held(run) as held:
        if held and (is_finished(run) or time.time() - run.stat().st_mtime > _ABANDONED_SECONDS):
            shutil.rmtree(run, ignore_errors=True)


@contextmanager
def _held(run: Path) -> Iterator[bool]:
    """Hold the run's lock; yields False when another process does. The system lets go of it however the holder ends."""
    descriptor = os.open(run / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        yield False
        return
    try:
        yield True
    finally:
        os.close(descriptor)


def _sources(code: Iterable[Path]) -> list[Path]:
    """The Python files of files and folders, in order of path."""
    return sorted(file for path in code for file in (path.rglob("*.py") if path.is_dir() else [path]))
