"""Where remote data lies, behind a small interface: an S3 prefix, or a folder that stands in for one.

A storage is rooted: keys are relative to its root, and listed in the order of their UTF-8 bytes. Whatever it hands over has
been compared with what was wanted; what no longer is as listed raises `ObjectChanged`.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from nightowl.errors import SettingsError

CHUNK_BYTES = 1 << 20
SCHEME = "s3://"

_MD5 = re.compile(r"[0-9a-f]{32}")


class Wanted(Protocol):
    """An object to be had, and what is known of it before it comes. None stands for what nobody has said."""

    @property
    def key(self) -> str: ...
    @property
    def num_bytes(self) -> int | None: ...
    @property
    def etag(self) -> str | None:
        """What the server calls its content."""

    @property
    def md5(self) -> str | None:
        """Of the content, in lower-case hex."""


class RemoteObject(NamedTuple):
    """One object of a listing. `etag` (without quotes) is new whenever the content is; often it is the content's MD5."""

    key: str
    num_bytes: int
    etag: str

    @property
    def md5(self) -> str | None:
        """The ETag where it can be one. Objects put in several parts have another form; for encrypted ones, see `Verifier`."""
        return self.etag if is_md5(self.etag) else None


class NamedByContent(NamedTuple):
    """An object that nobody listed: its MD5 says what it must be."""

    key: str
    md5: str

    @property
    def num_bytes(self) -> None:
        return None

    @property
    def etag(self) -> None:
        return None


class ObjectChanged(Exception):
    """An object that was listed is gone, or is another one by now: list again."""


class Storage(Protocol):
    """Safe to use from many threads."""

    @property
    def url(self) -> str:
        """The root, for people."""

    def list(self) -> Iterator[RemoteObject]:
        """Every object under the root, in the order of their keys. Raises RemoteError."""

    def download(self, wanted: Wanted, file: IO[bytes]) -> None:
        """Write the whole content to the empty `file`, verified. Raises ObjectChanged, RemoteError."""

    async def read(self, wanted: Wanted) -> memoryview | None:
        """The verified content of a small object at the first attempt; None when `download` has to see what it is about."""

    def local(self, wanted: Wanted) -> str | None:
        """A file of this machine that holds it and that nobody writes to, so that a link does for a copy; None without one."""

    def give_up(self) -> None:
        """Nobody wants it any more: let what is being downloaded fail soon instead of trying again."""


class Place(NamedTuple):
    """A parsed `s3://bucket/prefix`; the prefix is empty or ends with a slash."""

    bucket: str
    prefix: str

    @property
    def url(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.prefix}"


def is_md5(text: str) -> bool:
    """Has `text` the form of an MD5?"""
    return _MD5.fullmatch(text) is not None


def parse_url(source: str) -> Place:
    """The bucket and prefix of `source`.

    Raises:
        SettingsError: when it is not an s3:// address with a bucket.
    """
    bucket, _, prefix = source.removeprefix(SCHEME).partition("/")
    if not source.startswith(SCHEME) or not bucket:
        raise SettingsError(f"{source}: expected a folder, s3://BUCKET/PREFIX or dvc:PATH as the place of the data")
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

    def download(self, wanted: Wanted, file: IO[bytes]) -> None:
        digest = hashlib.md5(usedforsecurity=False)
        try:
            with (self._root / wanted.key).open("rb") as content:
                while piece := content.read(CHUNK_BYTES):
                    digest.update(piece)
                    file.write(piece)
        except FileNotFoundError:
            raise ObjectChanged(f"{self.url}/{wanted.key}: gone since it was listed") from None
        if digest.hexdigest() != wanted.md5:
            raise ObjectChanged(f"{self.url}/{wanted.key}: changed since it was listed")

    async def read(self, wanted: Wanted) -> None:
        return None

    def local(self, wanted: Wanted) -> None:
        return None

    def give_up(self) -> None:
        pass
