"""Where the data of a detector lies: a setting, or else the folder that was pinned last."""

import fcntl
import json
from pathlib import Path

from nightowl.errors import DataError
from nightowl.files import write_atomic
from nightowl.settings import Settings, home_of


def source_folder(settings: Settings, detector: str) -> Path:
    """The folder in which the data of `detector` lies.

    Raises:
        DataError: when nobody has said where it lies, or it is not there.
    """
    setting = settings.sources.get(detector)
    if setting is not None:
        return _existing(Path(setting).expanduser(), f"setting sources.{detector}")
    record = _record(settings)
    pinned = _pinned(record).get(detector)
    if pinned is None:
        raise DataError(
            f"{detector}: nobody has said where its data lies; name it in settings.toml under [sources], or in "
            f"NIGHTOWL_SOURCES__{detector.upper()}, or pin it: nightowl inputs pin {detector} --source PATH"
        )
    return _existing(Path(pinned), f"{record}: {detector}")


def record_source(settings: Settings, detector: str, folder: Path) -> None:
    """Remember that the data of `detector` lies in `folder`; safe against another process that does so for its own."""
    record = _record(settings)
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pinned = _pinned(record) | {detector: str(folder.absolute())}
        write_atomic(record, json.dumps(pinned, indent=2, sort_keys=True) + "\n")


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
