"""The objects a mirror has fetched, each a read-only file named by what it is, never by where it goes.

An object is complete when it has its name: it arrives under another, is verified, and is renamed. A pull that was killed
finds them again; a snapshot is made of hard links to them, and one that no snapshot links to any more is removed.
"""

import errno
import hashlib
import os
import shutil
import threading
from pathlib import Path

from nightowl.cloud.checksum import is_md5
from nightowl.cloud.storage import CHUNK_BYTES, RemoteObject, Storage
from nightowl.errors import RemoteError, StorageError


class ObjectStore:
    """Objects under `root`, written by one process (any of its threads) at a time."""

    def __init__(self, root: Path) -> None:
        self._root, self._arriving = root, root / "arriving"

    def prepare(self) -> None:
        """Make the folders, and remove what arrived in part."""
        shutil.rmtree(self._arriving, ignore_errors=True)
        self._arriving.mkdir(parents=True)

    def path(self, found: RemoteObject) -> Path:
        """Where an object is kept: by content where its ETag can be an MD5, else by key and ETag."""
        if is_md5(found.etag):
            name = f"{found.etag}-{found.num_bytes}"
        else:
            name = hashlib.sha256("\0".join(map(str, found)).encode()).hexdigest()
        return self._root / name[:2] / name

    def ensure(self, storage: Storage, found: RemoteObject) -> int | None:
        """Have the object here, whole; returns how many bytes were fetched for it, None when it was here already."""
        path = self.path(found)
        if is_sound(path, found):
            return None
        arriving = self._arriving / f"{path.name}.{threading.get_ident()}"
        try:
            with open(arriving, "wb", opener=_new_read_only) as file:
                storage.download(found, file)
                if not is_md5(found.etag):  # nothing could tell, after a power cut, whether it is whole
                    file.flush()
                    os.fsync(file.fileno())
            path.parent.mkdir(exist_ok=True)
            arriving.replace(path)
        except OSError as error:
            error.filename = error.filename or str(self._root)
            raise
        finally:
            arriving.unlink(missing_ok=True)
        return found.num_bytes

    def link(self, found: RemoteObject, target: Path) -> None:
        """Make `target` the object. Raises FileNotFoundError when it is not here, RemoteError when `target` cannot be."""
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._link(self.path(found), target)
        except (FileExistsError, NotADirectoryError):
            raise RemoteError(
                f"{found.key}: another object has this name, or the name of one of its folders, as a file; rename one of them"
            ) from None

    def _link(self, path: Path, target: Path) -> None:
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

    def _copy_in_place(self, path: Path) -> None:
        copy = self._arriving / path.name
        shutil.copyfile(path, copy)
        shutil.copystat(path, copy)
        copy.replace(path)

    def drop_unlinked(self) -> int:
        """Remove objects that nothing links to; returns their number."""
        unlinked = [path for path in self._root.glob("??/*") if path.stat().st_nlink == 1]
        for path in unlinked:
            path.unlink()
        return len(unlinked)


def _new_read_only(path: str, flags: int) -> int:
    """Like `open`, for a file that only this very descriptor can write."""
    return os.open(path, flags | os.O_EXCL, 0o444)


def is_sound(path: Path, found: RemoteObject) -> bool:
    """Is `path` there with the content of `found`, as far as its ETag can tell?"""
    try:
        if path.stat().st_size != found.num_bytes:
            return False
        return not is_md5(found.etag) or _md5(path) == found.etag
    except FileNotFoundError:
        return False


def _md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()
