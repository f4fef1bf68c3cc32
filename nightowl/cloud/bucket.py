"""A place for objects that are written and read back, behind five verbs; and a folder as one: the twin of S3 without a network.

What differs between the two is nothing that a caller could notice: an object is there whole or not at all, what was put is
found by the next listing, and `put_if_absent` lets one of many writers win.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, Protocol, cast

from nightowl.files import fsync_folder

_BEING_WRITTEN = ".put."
Content = bytes | Path
"""What is put: bytes, or the content of a file."""


class StoredObject(NamedTuple):
    """One object of a listing."""

    key: str
    num_bytes: int


class ObjectMissing(Exception):
    """The object that was asked for is not there."""


class Bucket(Protocol):
    """Rooted: keys are relative, parts divided by `/`, none empty or begun with a dot. Safe to use from several threads.

    Each verb raises RemoteError (S3) or OSError (a folder) when the place cannot do it.
    """

    @property
    def url(self) -> str:
        """The root, for people; ends with a slash."""

    def under(self, prefix: str) -> "Bucket":
        """The part of it whose keys begin with `prefix` and a slash."""

    def put(self, key: str, content: Content) -> None:
        """Have the object there, in place of one that was."""

    def put_if_absent(self, key: str, content: bytes) -> bool:
        """Put it unless there is one already; True when what is there is `content`. Of writers with different contents one
        gets True, however they race; the same content again is True again, as after an answer that was lost."""

    def get(self, key: str) -> bytes:
        """The whole content. Raises ObjectMissing."""

    def list(self, prefix: str = "") -> list[StoredObject]:
        """Every object whose key begins with `prefix`, in the order of their keys."""

    def delete(self, key: str) -> None:
        """Have no such object; one that is not there already is fine."""


class FolderBucket:
    """A folder as a bucket. What is written has another name, begun with a dot, until it is whole and on the disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def url(self) -> str:
        return f"{self.root}/"

    def under(self, prefix: str) -> "FolderBucket":
        return FolderBucket(self.path(prefix))

    def path(self, key: str) -> Path:
        """Where an object lies."""
        return self.root / checked_key(key)

    def sweep(self) -> None:
        """Remove what writers left behind that were killed. For when nobody else writes here."""
        for left in self.root.rglob(f"{_BEING_WRITTEN}*"):
            left.unlink(missing_ok=True)

    def put(self, key: str, content: Content) -> None:
        with self._written(key, lambda file: _copy(content, file)) as written:
            os.replace(written, self.path(key))

    def put_stream(self, key: str, produce: Callable[[IO[bytes]], object]) -> tuple[int, str]:
        """Put what `produce` writes, without holding it in memory; returns its number of bytes and SHA-256."""
        hashed = _Hashed()

        def write(file: IO[bytes]) -> None:
            hashed.file = file
            produce(cast(IO[bytes], hashed))

        with self._written(key, write) as written:
            os.replace(written, self.path(key))
        return hashed.num_bytes, hashed.sha256.hexdigest()

    def put_if_absent(self, key: str, content: bytes) -> bool:
        with self._written(key, lambda file: file.write(content)) as written:
            try:
                os.link(written, self.path(key))
            except FileExistsError:
                return self.get(key) == content
        return True

    def get(self, key: str) -> bytes:
        try:
            return self.path(key).read_bytes()
        except FileNotFoundError:
            raise ObjectMissing(f"{self.url}{key}: no such object") from None

    def list(self, prefix: str = "") -> list[StoredObject]:
        within = self.root / prefix.rpartition("/")[0]
        found = []
        for folder, folders, names in os.walk(within):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                key = (Path(folder) / name).relative_to(self.root).as_posix()
                if not name.startswith(".") and key.startswith(prefix):
                    found.append(StoredObject(key, os.stat(self.root / key).st_size))
        return sorted(found)

    def delete(self, key: str) -> None:
        path = self.path(key)
        path.unlink(missing_ok=True)
        if path.parent.is_dir():
            fsync_folder(path.parent)

    def remove(self) -> None:
        """Have nothing left, the folder itself included."""
        shutil.rmtree(self.root, ignore_errors=True)

    @contextmanager
    def _written(self, key: str, write: Callable[[IO[bytes]], object]) -> Iterator[Path]:
        """A file of what `write` writes, flushed to disk, in the folder of `key`; it is gone afterwards."""
        folder = self.path(key).parent
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=_BEING_WRITTEN)
        written = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(written, 0o644)
            yield written
        finally:
            written.unlink(missing_ok=True)
        fsync_folder(folder)


class _Hashed:
    """A file that counts and hashes what passes through it."""

    file: IO[bytes]

    def __init__(self) -> None:
        self.num_bytes, self.sha256 = 0, hashlib.sha256()

    def write(self, content: bytes) -> int:
        self.sha256.update(content)
        self.num_bytes += len(content)
        return self.file.write(content)

    def flush(self) -> None:
        self.file.flush()


def _copy(content: Content, file: IO[bytes]) -> None:
    if isinstance(content, Path):
        with content.open("rb") as source:
            shutil.copyfileobj(source, file, 1 << 20)
    else:
        file.write(content)


def checked_key(key: str) -> str:
    """`key` itself. Raises ValueError when it is none: what is read from a listing must not lead out of the root."""
    parts = key.split("/")
    if not all(parts) or any(part.startswith(".") or "\\" in part or "\0" in part for part in parts):
        raise ValueError(f"{key!r}: expected the key of an object: parts divided by /, none empty or begun with a dot")
    return key
