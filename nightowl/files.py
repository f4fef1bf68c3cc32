"""Files written whole or not at all.

A write that matters goes beside its target and is published by one rename; a reader sees the old content or the new,
never half of either, whenever the writer is killed.
"""

import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel

_CHUNK_BYTES = 1 << 20


def sha256_file(path: Path) -> str:
    """The lower-case hex SHA-256 of a file's content, read in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def open_regular(path: Path) -> IO[bytes]:
    """`path` open for reading. What is no regular file is an OSError at once: a pipe or a device may have no end."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    mode = os.fstat(file).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(file, "rb")
    os.close(file)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "Not a regular file", str(path))


def read_regular(path: Path) -> bytes:
    """The content of a file that others wrote, by the rule of `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def sha256_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_atomic(path: Path, content: bytes | str) -> None:
    """Publish `content` at `path` by one rename, flushed to disk first; parents are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


@contextmanager
def publishing_folder(target: Path) -> Iterator[Path]:
    """Yield a scratch folder beside `target`; on a clean exit it takes the place of `target`, on an error it is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        yield scratch
        os.chmod(scratch, 0o755)
        if target.exists():
            shutil.rmtree(target)
        os.replace(scratch, target)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    fsync_folder(target.parent)


def write_record(path: Path, record: "BaseModel") -> None:
    """Publish a record as readable JSON: two-space indent, fields in their declared order."""
    write_atomic(path, record.model_dump_json(indent=2) + "\n")


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no spare spaces: equal values give equal text, so it may be hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def fsync_folder(folder: Path) -> None:
    """Have the names in `folder` on the disk: without it a rename may be undone by a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
