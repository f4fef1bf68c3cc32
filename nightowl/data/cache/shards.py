"""Many images in one file, with an index and a marker beside it; published whole by one rename, and never changed after.

What lacks its marker, or does not agree with it, does not exist: its images count as missing and are made anew.
"""

import contextlib
import os
import secrets
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ValidationError

from nightowl.data.cache.damage import damaged_in
from nightowl.data.cache.entries import ROW, Key, Rows, keys, make_row, pad
from nightowl.data.cache.tables import from_parquet, to_parquet
from nightowl.data.images import Size
from nightowl.files import sha256_bytes, write_atomic, write_record

PIXELS, INDEX, MARKER = "pixels.bin", "index.parquet", "COMMIT"


class Commit(BaseModel):
    """The marker: the length of the images' file, and the digest of the index."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    num_images: int
    num_bytes: int
    index_sha256: str


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """A published shard: its rows, without those that were found damaged."""

    folder: Path
    rows: Rows
    num_bytes: int

    @property
    def name(self) -> str:
        return self.folder.name


class ShardWriter:
    """A shard being written, in a hidden folder until it is committed. Memory holds its index only."""

    def __init__(self, shards: Path) -> None:
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
        self._target, self._scratch = shards / name, shards / f".{name}"
        self._scratch.mkdir()
        self._file = (self._scratch / PIXELS).open("wb")
        self._rows = list[tuple[bytes | int, ...]]()
        self.num_bytes = 0

    def add(self, key: Key, original: Size, stored: bytes) -> None:
        """Append an image. Raises OSError, as when the disk is full."""
        padded = pad(stored)
        self._rows.append(make_row(key, original, self.num_bytes, len(stored), padded))
        self.num_bytes += self._file.write(padded)

    def commit(self) -> None:
        """Publish it, flushed to disk first."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        index = to_parquet(np.array(self._rows, ROW), [self._target.name])
        write_atomic(self._scratch / INDEX, index)
        commit = Commit(num_images=len(self._rows), num_bytes=self.num_bytes, index_sha256=sha256_bytes(index))
        write_record(self._scratch / MARKER, commit)
        os.replace(self._scratch, self._target)

    def discard(self) -> None:
        with contextlib.suppress(OSError):  # what is still buffered does not fit on a full disk either
            self._file.close()
        shutil.rmtree(self._scratch, ignore_errors=True)


def read_shard(folder: Path) -> Shard | None:
    """The shard in `folder`; None when it is not whole. The images are not read: only lengths and the index are compared."""
    commit = read_commit(folder)
    try:
        index = (folder / INDEX).read_bytes()
        if commit is None or sha256_bytes(index) != commit.index_sha256:
            return None
        rows, _ = from_parquet(index)
    except (OSError, KeyError, ValueError, pa.ArrowException):
        return None
    damaged = damaged_in(folder)
    if damaged is None:
        return None
    sound = np.array([key not in damaged for key in keys(rows)], np.bool_) if damaged else slice(None)
    return Shard(folder, rows[sound], commit.num_bytes)


def read_commit(folder: Path) -> Commit | None:
    """The marker of a shard whose images' file has the length that it says, else None."""
    try:
        commit = Commit.model_validate_json((folder / MARKER).read_bytes())
        return commit if (folder / PIXELS).stat().st_size == commit.num_bytes else None
    except (OSError, ValidationError):
        return None


def read_shards(shards: Path) -> list[Shard]:
    """Every whole shard, the oldest first."""
    found = (read_shard(path) for path in sorted(shards.glob("[!.]*")))
    return [shard for shard in found if shard is not None]


def remove_shard(folder: Path) -> None:
    """Take a shard away: first out of sight, by a rename, then its files. Who has it open keeps it."""
    hidden = folder.with_name(f".{folder.name}")
    os.replace(folder, hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def clear_scratch(shards: Path) -> None:
    """Remove what killed builds left. Only for one who knows that nobody builds."""
    for path in shards.glob(".*"):
        shutil.rmtree(path, ignore_errors=True)
