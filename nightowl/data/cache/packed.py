"""The reader: the images of one dataset version by number, straight from the page cache.

Any number of processes and threads read at once, before and after a fork, and share one copy in memory; the kernel may drop
it at any time. While a reader lives, pruning leaves what it reads. Workers of a loader load this file, so it needs little.
"""

import mmap
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nightowl.data.cache.entries import Rows
from nightowl.data.cache.forms import Form
from nightowl.data.cache.place import open_lock, share
from nightowl.data.images import Size


class PackedImages:
    """Images 0 to N-1, in the order they were built in. Sent to another process, it maps the same files there."""

    def __init__(self, index: Path, form: Form, rows: Rows, files: Sequence[Path]) -> None:
        """What `open_packed` found: N rows of the version `index`, whose shards count the `files`."""
        self.index = index
        self._form, self._rows, self._files = form, rows, tuple(files)
        in_use = open_lock(index.with_suffix(".use"))
        weakref.finalize(self, in_use.close)
        share(in_use)
        self._stored = [_map(file) for file in files]
        self._numbers: dict[str, int] | None = None

    def __reduce__(self) -> tuple[type["PackedImages"], tuple[Path, Form, Rows, tuple[Path, ...]]]:
        return PackedImages, (self.index, self._form, self._rows, self._files)

    def __len__(self) -> int:
        return len(self._rows)

    def image(self, index: int) -> NDArray[np.uint8]:
        """Pixels (h, w, 3), blue, green, red: in the raw form a read-only view of the file, in the JPEG form a new array."""
        row = self._rows[index]
        return self._form.decode(self.stored(index), int(row["height"]), int(row["width"]))

    def stored(self, number: int) -> NDArray[np.uint8]:
        """The stored bytes (n,), a read-only view."""
        row = self._rows[number]
        first = int(row["offset"])
        return self._stored[int(row["shard"])][first : first + int(row["num_bytes"])]

    def size(self, number: int) -> Size:
        """Width and height of the image as it is here."""
        row = self._rows[number]
        return Size(int(row["width"]), int(row["height"]))

    def original_size(self, number: int) -> Size:
        """Width and height of the source image as seen."""
        row = self._rows[number]
        return Size(int(row["original_width"]), int(row["original_height"]))

    def find(self, sha256: str) -> int | None:
        """The number of the first image whose source file has that digest."""
        if self._numbers is None:
            digests = self._rows["sha256"].tolist()
            self._numbers = {digest.decode(): number for number, digest in reversed(list(enumerate(digests)))}
        return self._numbers.get(sha256)

    @property
    def num_bytes(self) -> int:
        """Bytes of all images, as stored."""
        return int(self._rows["num_bytes"].sum())


def _map(file: Path) -> NDArray[np.uint8]:
    """A file as read-only bytes."""
    with file.open("rb") as opened:
        return np.frombuffer(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
