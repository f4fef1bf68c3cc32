"""Which content DVC has recorded for a folder of a checkout: read from `FOLDER.dvc`, or from the `dvc.lock` that makes it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from nightowl.cloud.storage import is_md5
from nightowl.errors import DataError

_FOLDER = ".dir"

Record = TypeVar("Record", bound=BaseModel)


class _Out(BaseModel):
    path: str
    md5: str | None = None
    hash: str | None = None
    size: int | None = None
    remote: str | None = None


class _DvcFile(BaseModel):
    outs: tuple[_Out, ...] = ()
    wdir: str = "."


class _Stage(BaseModel):
    outs: tuple[_Out, ...] = ()


class _DvcLock(BaseModel):
    stages: dict[str, _Stage] = {}


@dataclass(frozen=True)
class Tracked:
    """A folder as DVC has recorded it. `md5` is that of its list of files; `num_bytes` is their sum, where it was recorded."""

    path: Path
    repo: Path
    md5: str
    num_bytes: int | None
    remote: str | None


def tracked_folder(path: Path) -> Tracked:
    """What DVC has recorded for the folder `path`, or for the one that the file `path` (its `.dvc` file) is about.

    Raises:
        DataError: when the path is not absolute, is in no DVC repository, is not tracked, is a single file, or was recorded
            before DVC 3.
    """
    if not path.is_absolute():
        raise DataError(f"dvc:{path}: expected an absolute path, as a night runs in a folder of its own")
    repo = next((folder for folder in path.parents if (folder / ".dvc").is_dir()), None)
    if repo is None:
        raise DataError(f"{path}: in no DVC repository (no folder above it has .dvc in it); name a folder that DVC tracks")
    where, folder, out = _find(path, repo)
    if out.md5 is None or out.hash != "md5":
        raise DataError(
            f"{where}: {out.path} has no MD5 as DVC 3 records it; record it anew: dvc commit (or dvc cache migrate)"
        )
    if not out.md5.endswith(_FOLDER) or not is_md5(out.md5.removesuffix(_FOLDER)):
        raise DataError(f"{where}: {out.path} is a single file; expected a folder of images and labels")
    return Tracked(folder, repo, out.md5.removesuffix(_FOLDER), out.size, out.remote)


def _find(path: Path, repo: Path) -> tuple[Path, Path, _Out]:
    """The file it is recorded in, the folder and the record."""
    beside = path if path.suffix == ".dvc" and path.is_file() else path.with_name(f"{path.name}.dvc")
    if beside.is_file():
        recorded = _load(beside, _DvcFile)
        outs = [(beside.parent / recorded.wdir / out.path, out) for out in recorded.outs]
        if len(outs) != 1:
            raise DataError(f"{beside}: expected one folder, found {len(outs)} outputs")
        return beside, outs[0][0], outs[0][1]
    for lock in _locks(path, repo):
        for stage in _load(lock, _DvcLock).stages.values():
            for out in stage.outs:
                if (lock.parent / out.path).resolve() == path.resolve():
                    return lock, path, out
    raise DataError(f"{path}: DVC has no record of it: neither {beside.name} nor an output in dvc.lock; dvc add {path.name}")


def _locks(path: Path, repo: Path) -> Iterator[Path]:
    """The lock files of the folders above, up to the repository."""
    for folder in path.parents:
        if (folder / "dvc.lock").is_file():
            yield folder / "dvc.lock"
        if folder == repo:
            return


def _load(path: Path, kind: type[Record]) -> Record:
    try:
        return kind.model_validate(YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8")) or {})
    except (YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not readable as DVC writes it: {reason}; restore it: git checkout {path.name}") from error
