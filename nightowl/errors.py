"""Every error that nightowl raises on purpose, as one tree.

    NightowlError                 exit 1
    ├── UserError                 exit 2    what the user gave cannot be used; nothing was half-written
    │   ├── ParamsError                     params.yaml: unknown key, wrong type, out of range
    │   ├── SettingsError                   settings.toml or a NIGHTOWL_* variable
    │   ├── DataError                       a data set: missing, empty, ambiguous, out of its own names
    │   ├── WeightsError                    base weights: absent, wrong task, wrong digest
    │   ├── RegistryError                   the registry: unreadable, no such model, no such version
    │   ├── CheckpointError                 a checkpoint: of another training, or of incompatible code
    │   ├── RemoteError                     an object store: not reached, no such bucket, no permission
    │   │   └── RemoteLacks                 it was reached, and what should be there is not, or is damaged
    │   └── StorageError                    the disk: full, read-only, no permission
    ├── StageFailed               exit 1    a stage ended with an error; trying again would not help
    │   └── Fenced                          another process has taken this training over
    └── Interrupted               exit 130  stopped from outside; run it again and it goes on
        └── Preempted             exit 75   the machine was taken back

A message says what was expected, what was found, where, and what to do.
"""

import errno
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class NightowlError(Exception):
    """The root of the tree. `exit_code` is what the process ends with."""

    exit_code = 1


class UserError(NightowlError):
    exit_code = 2


class ParamsError(UserError):
    pass


class SettingsError(UserError):
    pass


class DataError(UserError):
    pass


class WeightsError(UserError):
    pass


class RegistryError(UserError):
    pass


class CheckpointError(UserError):
    pass


class RemoteError(UserError):
    pass


class RemoteLacks(RemoteError):
    pass


class StorageError(UserError):
    pass


class StageFailed(NightowlError):
    exit_code = 1


class Fenced(StageFailed):
    pass


class Interrupted(NightowlError):
    exit_code = 130


class Preempted(Interrupted):
    exit_code = 75


_STORAGE_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space or set NIGHTOWL_HOME to a larger disk, then run again",
    errno.EDQUOT: "the disk quota is used up: free some space or set NIGHTOWL_HOME to another disk, then run again",
    errno.EROFS: "the disk is read-only: set NIGHTOWL_HOME to a writable folder",
    errno.EACCES: "permission denied: check who owns it",
    errno.EPERM: "not permitted: check who owns it",
    errno.EFBIG: "larger than a file may become here: raise the limit (ulimit -f), or set NIGHTOWL_HOME to another disk",
    errno.EIO: "the disk reports an error: check it, or set NIGHTOWL_HOME to another disk",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n), then run again",
    errno.ENAMETOOLONG: "the name is too long: correct it where it is written",
    errno.ENOTDIR: "a part of it is a file where a folder is expected: correct the path",
    errno.ELOOP: "its links lead round in circles: correct them",
}


def explain_os_error(error: OSError) -> StorageError | None:
    """The one-line StorageError for an OSError that a user can act on, or None for any other."""
    advice = _STORAGE_ADVICE.get(error.errno or 0)
    if advice is None:
        return None
    where = f"{_shortened(str(error.filename))}: " if error.filename else ""
    return StorageError(f"{where}{advice}")


def remedy(path: Path) -> str:
    """What to do where this file of a checkout is not there: pin what lies in inputs/NAME, run the stage of out/NAME/STAGE."""
    match path.parts:
        case (*_, "out", name, stage, _):
            return f"run that stage first: dvc repro {stage}@{name}"
        case (*_, "inputs", name, _):
            return f"pin the inputs first: nightowl inputs pin {name} --source PATH"
    return "pin the inputs first: nightowl inputs pin NAME --source PATH"


def did_you_mean(given: str, known: Iterable[str], prefix: str = "") -> str:
    """For a message about a name that is none of `known`: what was likely meant, one or two, or nothing.
    `prefix`: of both, left out here so that it makes no names alike."""
    near = get_close_matches(given, known, n=2)
    return f" (did you mean {' or '.join(prefix + name for name in near)}?)" if near else ""


def _shortened(name: str, length: int = 300) -> str:
    return name if len(name) <= length else f"{name[:length]}…"
