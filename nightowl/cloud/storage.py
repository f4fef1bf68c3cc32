"""Where remote data lies, behind a small interface: an S3 prefix, or a folder that stands in for one.

A storage is rooted: keys are relative to its root, and listed in the order of their UTF-8 bytes. Whatever it hands over has
been compared with what the listing said; what no longer is as listed raises `ObjectChanged`.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from nightowl.errors import SettingsError

CHUNK_BYTES = 1 << 20
SCHEME = "s3://"


class RemoteObject(NamedTuple):
    """One object of a listing. `etag` (without quotes) is new whenever the content is; often it is the content's MD5."""

    key: str
    num_bytes: int
    etag: str


class ObjectChanged(Exception):
    """An object that was listed is gone, or is another one by now: list again."""


class Storage(Protocol):
    """Safe to use from many threads."""

    @property
    def url(self) -> str:
        """The root, for people."""

    def list(self) -> Iterator[RemoteObject]:
        """Every object under the root, in the order of their keys. Raises RemoteError."""

    def download(self, found: RemoteObject, file: IO[bytes]) -> None:
        """Write the whole content to the empty `file`, verified. Raises ObjectChanged, RemoteError."""

    def give_up(self) -> None:
        """Nobody wants it any more: let what is being downloaded fail soon instead of trying again."""


class Place(NamedTuple):
    """A parsed `s3://bucket/prefix`; the prefix is empty or ends with a slash."""

    bucket: str
    prefix: str

    @property
    def url(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.prefix}"


def parse_url(source: str) -> Place:
    """The bucket and prefix of `source`.

    Raises:
        SettingsError: when it is not an s3:// address with a bucket.
    """
    bucket, _, prefix = source.removeprefix(SCHEME).partition("/")
    if not source.startswith(SCHEME) or not bucket:
        raise SettingsError(f"{source}: expected a folder or s3://BUCKET/PREFIX as the place of the data")
    return Place(bucket, prefix.strip("/") + "/" if prefix.strip("/") else "")


class FolderStorage:
    """A folder as a storage: the twin of S3 that needs no network. ETags are MD5, as for objects put in one piece."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def url(self) -> str:
        return str(self._root)

    def list(self) -> Iterator[RemoteObject]:
        keys = (path.relative_to(self._root).as_posix() for path in self._root.rglob("*") if path.is_file())
        for key in sorted(keys):
            content = (self._root / key).read_bytes()
            yield RemoteObject(key, len(content), hashlib.md5(content, usedforsecurity=False).hexdigest())

    def download(self, found: RemoteObject, file: IO[bytes]) -> None:
        try:
            content = (self._root / found.key).read_bytes()
        except FileNotFoundError:
            raise ObjectChanged(f"{self.url}/{found.key}: gone since it was listed") from None
        if hashlib.md5(content, usedforsecurity=False).hexdigest() != found.etag:
            raise ObjectChanged(f"{self.url}/{found.key}: changed since it was listed")
        file.write(content)

    def give_up(self) -> None:
        pass
