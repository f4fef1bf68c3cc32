"""The objects a mirror has fetched, each a read-only file named by what it is, never by where it goes.

An object is complete when it has its name: it arrives under another, is verified, and is renamed. A pull that was killed
finds them again; a snapshot is made of hard links to them, and one that no snapshot links to any more is removed.
"""

import errno
import hashlib
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from nightowl.cloud.storage import CHUNK_BYTES, RemoteObject, Storage, Wanted
from nightowl.errors import RemoteError, StorageError


def name_by_content(wanted: Wanted) -> str:
    """Where under the root an object is kept: by its MD5 where that is known, else by its key and ETag."""
    if wanted.md5:
        name = f"{wanted.md5}-{wanted.num_bytes}"
    else:
        name = hashlib.sha256(f"{wanted.key}\0{wanted.num_bytes}\0{wanted.etag}".encode()).hexdigest()
    return f"{name[:2]}/{name}"


class ObjectStore:
    """Objects under `root`, written by one process (any of its threads) at a time; they arrive in `incomplete`. Paths are
    strings here: with tens of thousands of small files, making Path objects would cost as much as fetching them."""

    def __init__(self, root: Path, incomplete: Path, name: Callable[[Wanted], str] = name_by_content) -> None:
        self._root, self._incomplete, self._name = str(root), str(incomplete), name
        self._numbers = itertools.count()

    def prepare(self) -> None:
        """Make the folders; what came in part goes."""
        shutil.rmtree(self._incomplete, ignore_errors=True)
        os.makedirs(self._incomplete)
        for number in range(256):
            os.makedirs(f"{self._root}/{number:02x}", exist_ok=True)

    def path(self, wanted: Wanted) -> str:
        return f"{self._root}/{self._name(wanted)}"

    def has(self, wanted: Wanted) -> bool:
        """Is it here, whole?"""
        return is_sound(self.path(wanted), wanted)

    def put(self, wanted: Wanted, body: memoryview) -> None:
        """Keep verified content."""
        with self._arriving(wanted) as file:
            file.write(body)

    def adopt(self, wanted: Wanted, local: str) -> bool:
        """Link to a file that holds the object; False where that cannot be done."""
        beside = f"{self._incomplete}/{next(self._numbers)}"
        try:
            os.link(local, beside)
        except OSError:
            return False
        os.replace(beside, self.path(wanted))
        with suppress(FileNotFoundError):
            os.unlink(beside)  # a rename between two links to one file does nothing
        return True

    def ensure(self, storage: Storage, wanted: Wanted) -> int | None:
        """Have the object here, whole; returns how many bytes were fetched for it, None when it was here already."""
        if self.has(wanted):
            return None
        with self._arriving(wanted) as file:
            storage.download(wanted, file)
            return file.tell()

    @contextmanager
    def _arriving(self, wanted: Wanted) -> Iterator[IO[bytes]]:
        """An empty file that gets its name when the block has filled it, and goes when that fails."""
        beside = f"{self._incomplete}/{next(self._numbers)}"
        try:
            with open(beside, "wb", opener=_new_read_only) as file:
                yield file
                if not wanted.md5:  # nothing could tell, after a power cut, whether it is whole
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(beside, self.path(wanted))
        except BaseException as error:
            with suppress(FileNotFoundError):
                os.unlink(beside)
            if isinstance(error, OSError):
                error.filename = error.filename or self._root
            raise

    def link(self, found: RemoteObject, target: str) -> None:
        """Make `target` the object; its folder exists.

        Raises:
            FileNotFoundError: when the object is not here.
            RemoteError: when another object has this name.
            StorageError: when the file system has no hard links.
        """
        try:
            self._link(self.path(found), target)
        except FileExistsError:
            raise _clash(found) from None

    def _link(self, path: str, target: str) -> None:
        try:
            os.link(path, target)
        except OSError as error:
            if error.errno == errno.EMLINK:  # thousands of equal files, such as empty labels: go on with a copy
                self._copy_in_place(path)
                os.link(path, target)
            elif error.errno in (errno.EPERM, errno.ENOTSUP, errno.EXDEV):
                raise StorageError(
                    f"{target}: this file system has no hard links ({error.strerror}); set NIGHTOWL_HOME to one that has, "
                    "such as ext4 or xfs"
                ) from error
            else:
                raise

    def _copy_in_place(self, path: str) -> None:
        copy = f"{self._incomplete}/{next(self._numbers)}"
        shutil.copy2(path, copy)
        os.replace(copy, path)

    def drop_unlinked(self) -> int:
        """Remove objects that nothing links to; returns their number."""
        unlinked = [entry for entry in self._entries() if entry.stat().st_nlink == 1]
        for entry in unlinked:
            os.unlink(entry)
        return len(unlinked)

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        for number in range(256):
            with os.scandir(f"{self._root}/{number:02x}") as entries:
                yield from entries


def make_folder(folder: str, found: RemoteObject) -> None:
    """Make the folder that the object's file belongs in. Raises RemoteError when a file is in the way."""
    try:
        os.makedirs(folder, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise _clash(found) from None


def _clash(found: RemoteObject) -> RemoteError:
    return RemoteError(
        f"{found.key}: another object has this name, or that of one of its folders, as a file; rename one of them"
    )


def _new_read_only(path: str, flags: int) -> int:
    """Like `open`, for a file that only this very descriptor can write."""
    return os.open(path, flags | os.O_EXCL, 0o444)


def is_sound(path: str, wanted: Wanted) -> bool:
    """Is `path` there with the content that was wanted, as far as its length and MD5 can tell?"""
    try:
        if wanted.num_bytes not in (None, os.stat(path).st_size):
            return False
        return wanted.md5 is None or _md5(path) == wanted.md5
    except FileNotFoundError:
        return False


def _md5(path: str) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb", buffering=0) as file:
        piece_bytes = min(os.fstat(file.fileno()).st_size + 1, CHUNK_BYTES)  # a read takes memory for all that it asks for
        while piece := file.read(piece_bytes):
            digest.update(piece)
    return digest.hexdigest()
