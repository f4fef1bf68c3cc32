"""Where the data of a detector lies: a setting, or else what was pinned last.

A source is a folder, or it is remote: an address (s3://bucket/prefix), or a folder that DVC tracks (dvc:/path/in/a/checkout).
What is remote is pulled into a mirror; then the folder is the snapshot in the mirror that was pinned.
"""

import fcntl
import json
from pathlib import Path

from nightowl.errors import DataError
from nightowl.files import write_atomic
from nightowl.settings import Settings, home_of

DVC = "dvc:"
PINNED_SNAPSHOT = "pinned"


def source_folder(settings: Settings, detector: str) -> Path:
    """The folder in which the data of `detector` lies.

    Raises:
        DataError: when nobody has said where it lies, or it is not there.
    """
    source, where = _named(settings, detector)
    if not is_remote(source):
        return _existing(Path(source).expanduser(), where)
    folder = pinned_snapshot(settings, detector)
    if folder is None:
        raise DataError(f"{where}: {source} has not been pulled to this machine: nightowl data pull {detector}")
    return folder


def source_of(settings: Settings, detector: str) -> str:
    """The source that was named for `detector`. Raises DataError when none was."""
    return _named(settings, detector)[0]


def is_remote(source: str) -> bool:
    """Is `source` pulled into a mirror, rather than read where it lies?"""
    return "://" in source or source.startswith(DVC)


def tracked_path(source: str) -> Path | None:
    """The path of a source that DVC tracks; None for any other."""
    return Path(source.removeprefix(DVC)).expanduser() if source.startswith(DVC) else None


def absolute_source(source: str) -> str:
    """A source as it is understood from any folder."""
    if "://" in source:
        return source
    scheme = DVC if source.startswith(DVC) else ""
    return scheme + str(Path(source.removeprefix(DVC)).expanduser().resolve())


def record_source(settings: Settings, detector: str, source: Path | str) -> None:
    """Remember `source` for `detector`; safe against another process that does so for its own."""
    record = _record(settings)
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pinned = _pinned(record) | {detector: str(source) if is_remote(str(source)) else str(Path(source).absolute())}
        write_atomic(record, json.dumps(pinned, indent=2, sort_keys=True) + "\n")


def mirror_root(settings: Settings, detector: str) -> Path:
    """Where a remote source of `detector` is mirrored."""
    return home_of(settings) / "mirrors" / detector


def pinned_snapshot(settings: Settings, detector: str) -> Path | None:
    """The folder in the mirror that was pinned last, if any."""
    link = mirror_root(settings, detector) / PINNED_SNAPSHOT
    return link.resolve() if link.exists() else None


def pin_snapshot(settings: Settings, detector: str, folder: Path) -> None:
    """Let the stages read `folder`, which lies in the mirror, from now on: one rename."""
    root = mirror_root(settings, detector)
    beside = root / f".{PINNED_SNAPSHOT}"
    beside.unlink(missing_ok=True)
    beside.symlink_to(folder.relative_to(root))
    beside.replace(root / PINNED_SNAPSHOT)


def _named(settings: Settings, detector: str) -> tuple[str, str]:
    """What was named, and where it was."""
    setting = settings.sources.get(detector)
    if setting is not None:
        return setting, f"setting sources.{detector}"
    record = _record(settings)
    pinned = _pinned(record).get(detector)
    if pinned is None:
        raise DataError(
            f"{detector}: nobody has said where its data lies; name it in settings.toml under [sources], or in "
            f"NIGHTOWL_SOURCES__{detector.upper()}, or pin it: nightowl inputs pin {detector} --source PATH"
        )
    return pinned, f"{record}: {detector}"


def _record(settings: Settings) -> Path:
    return home_of(settings) / "sources.json"


def _pinned(record: Path) -> dict[str, str]:
    try:
        values = json.loads(record.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise DataError(f"{record}: not readable as JSON ({error}); remove it and pin the inputs again") from error
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise DataError(f"{record}: expected detector names and folders, found {values!r}; remove it and pin the inputs again")
    return values


def _existing(folder: Path, where: str) -> Path:
    if not folder.is_absolute():
        raise DataError(f"{where}: expected an absolute path, as a night runs in a folder of its own, found {folder}")
    if not folder.is_dir():
        raise DataError(f"{where}: {folder}: no such folder; correct it, or pin the inputs again with --source PATH")
    return folder
