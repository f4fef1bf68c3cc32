"""The objects a mirror has fetched, each a read-only file named by what it is, never by where it goes.

An object is complete when it has its name: it arrives under another, is verified, and is renamed. A pull that was killed
finds them again; a snapshot is made of hard links to them, and one that no snapshot links to any more is removed.
"""

import errno
import hashlib
import os
import secrets
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nightowl.cloud.checksum import is_md5
from nightowl.cloud.storage import CHUNK_BYTES, RemoteObject, Storage
from nightowl.errors import RemoteError, StorageError


class ObjectStore:
    """Objects under `root`, written by one process (any of its threads) at a time. Paths are strings here: with tens of
    thousands of small files, making Path objects would cost as much as signing the requests."""

    def __init__(self, root: Path) -> None:
        self._root, self._ours = str(root), secrets.token_hex(4)

    def prepare(self) -> None:
        """Make the folders."""
        for number in range(256):
            os.makedirs(f"{self._root}/{number:02x}", exist_ok=True)

    def path(self, found: RemoteObject) -> str:
        """Where an object is kept: by content where its ETag can be an MD5, else by key and ETag."""
        if is_md5(found.etag):
            name = f"{found.etag}-{found.num_bytes}"
        else:
            name = hashlib.sha256("\0".join(map(str, found)).encode()).hexdigest()
        return f"{self._root}/{name[:2]}/{name}"

    def ensure(self, storage: Storage, found: RemoteObject) -> int | None:
        """Have the object here, whole; returns how many bytes were fetched for it, None when it was here already."""
        path = self.path(found)
        if is_sound(path, found):
            return None
        # Beside its place, so that 64 threads do not all wait for one folder.
        arriving = f"{path}.{self._ours}.{threading.get_ident()}"
        try:
            with open(arriving, "wb", opener=_new_read_only) as file:
                storage.download(found, file)
                if not is_md5(found.etag):  # nothing could tell, after a power cut, whether it is whole
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(arriving, path)
        except BaseException as error:
            with suppress(FileNotFoundError):
                os.unlink(arriving)
            if isinstance(error, OSError):
                error.filename = error.filename or self._root
            raise
        return found.num_bytes

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
        copy = f"{path}.{self._ours}"
        shutil.copy2(path, copy)
        os.replace(copy, path)

    def drop_unlinked(self) -> int:
        """Remove objects that nothing links to, and what arrived in part; returns their number."""
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


def is_sound(path: str, found: RemoteObject) -> bool:
    """Is `path` there with the content of `found`, as far as its ETag can tell?"""
    try:
        if os.stat(path).st_size != found.num_bytes:
            return False
        return not is_md5(found.etag) or _md5(path) == found.etag
    except FileNotFoundError:
        return False


def _md5(path: str) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while piece := file.read(CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()
