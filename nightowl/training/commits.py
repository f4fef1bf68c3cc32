"""What an interrupted training goes on from: one folder an epoch, published whole, believed only when its digests agree.

Ultralytics writes its checkpoints in place, so a kill can leave half of one. They are copied here when complete, with the
best weights and the history that belong to the same epoch; a reader takes the newest commit that is sound.
"""

import re
import shutil
from pathlib import Path

from pydantic import ValidationError

from nightowl.files import publishing_folder, sha256_file, write_record
from nightowl.records import Record

_FOLDER = re.compile(r"epoch-(\d+)")
_MARKER = "commit.json"
_KEPT = 2  # the newest may turn out unreadable, after a power failure for one
LAST, BEST, HISTORY = "last.pt", "best.pt", "results.csv"


class Commit(Record):
    """The state after `epoch` (1-based). `files` maps each file's name to its SHA-256; `finished`: nothing is left to train."""

    epoch: int
    best_epoch: int
    finished: bool
    files: dict[str, str]


def commit(run: Path, epoch: int, best_epoch: int, finished: bool, files: tuple[Path, ...]) -> None:
    """Publish copies of `files` as the state after `epoch`, and drop commits that are no longer needed."""
    folder = run / f"epoch-{epoch:04}"
    with publishing_folder(folder) as scratch:
        for file in files:
            shutil.copyfile(file, scratch / file.name)
        digests = {file.name: sha256_file(scratch / file.name) for file in files}
        write_record(scratch / _MARKER, Commit(epoch=epoch, best_epoch=best_epoch, finished=finished, files=digests))
    for old in _folders(run)[_KEPT:]:
        shutil.rmtree(old)


def latest(run: Path) -> tuple[Commit, Path] | None:
    """The newest sound commit of a run and its folder, or None when there is none."""
    for folder in _folders(run):
        found = _read(folder)
        if found and all(_agrees(folder / name, sha256) for name, sha256 in found.files.items()):
            return found, folder
    return None


def is_finished(run: Path) -> bool:
    """Whether the newest commit says that nothing is left to train; its files are not looked at."""
    newest = next(iter(_folders(run)), None)
    found = _read(newest) if newest else None
    return found is not None and found.finished


def _folders(run: Path) -> list[Path]:
    """Commit folders, newest first."""
    found = [(int(match[1]), path) for path in run.glob("epoch-*") if (match := _FOLDER.fullmatch(path.name))]
    return [path for _, path in sorted(found, reverse=True)]


def _read(folder: Path) -> Commit | None:
    try:
        return Commit.model_validate_json((folder / _MARKER).read_bytes())
    except (OSError, ValidationError):
        return None


def _agrees(path: Path, sha256: str) -> bool:
    return path.is_file() and sha256_file(path) == sha256
