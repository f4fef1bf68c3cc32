"""The reader: the images of one dataset version by number, straight from the page cache.

Any number of processes and threads read at once, before and after a fork, and share one copy in memory; the kernel may drop
it at any time. While a reader lives, pruning leaves what it reads. Workers of a loader load this file, so it needs little.

An image is held against its checksum when the first of them reads it: it must be brought into memory then anyhow. One that is
damaged is made from its source again, at each reading, and marked, so that the next build stores it anew.
"""

import mmap
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nightowl.data.cache.damage import mark_damaged
from nightowl.data.cache.entries import Rows, is_sound, keys
from nightowl.data.cache.forms import Form
from nightowl.data.cache.place import open_lock, share
from nightowl.data.cache.recipe import Origin
from nightowl.data.images import Size
from nightowl.errors import DataError


class PackedImages:
    """Images 0 to N-1, in the order they were built in. Sent to another process, it maps the same files there."""

    def __init__(self, index: Path, form: Form, rows: Rows, files: Sequence[Path], origin: Origin | bytes | None) -> None:
        """What `open_packed` found: N rows of the version `index`, whose shards count the `files`; `origin` is of all N."""
        self.index = index
        self._form, self._rows, self._files, self._origin = form, rows, tuple(files), origin
        in_use = open_lock(index.with_suffix(".use"))
        weakref.finalize(self, in_use.close)
        share(in_use)
        self._stored = [_map(file) for file in files]
        self._checked = _map_checks(checks_of(index), len(rows))
        self._numbers: dict[str, int] | None = None
        self._said = set[int]()

    def __reduce__(self) -> tuple[type["PackedImages"], tuple[Path, Form, Rows, tuple[Path, ...], bytes | None]]:
        if isinstance(self._origin, Origin):
            self._origin = self._origin.to_bytes()
        return PackedImages, (self.index, self._form, self._rows, self._files, self._origin)

    def __len__(self) -> int:
        return len(self._rows)

    def image(self, index: int) -> NDArray[np.uint8]:
        """Pixels (h, w, 3), blue, green, red: in the raw form a read-only view of the file, in the JPEG form a new array.

        Raises:
            DataError: when it is damaged, and its source is gone or not known.
        """
        row = self._rows[index]
        return self._form.decode(self.stored(index), int(row["height"]), int(row["width"]))

    def stored(self, number: int) -> NDArray[np.uint8]:
        """The stored bytes (n,), a read-only view. Raises DataError, as `image` does."""
        row = self._rows[number]
        first, num_bytes = int(row["offset"]), int(row["num_bytes"])
        shard = self._stored[int(row["shard"])]
        if not self._checked[number]:
            if not is_sound(row, shard):
                return self._made_again(number)
            self._checked[number] = True
        return shard[first : first + num_bytes]

    def _made_again(self, number: int) -> NDArray[np.uint8]:
        """The stored bytes of a damaged image, from its source."""
        row = self._rows[number]
        folder = self._files[int(row["shard"])].parent
        (key,) = keys(self._rows[number : number + 1])
        mark_damaged(folder, [key])
        if self._origin is None:
            raise DataError(f"{folder}: image {number} is damaged; prepare the images again")
        if isinstance(self._origin, bytes):
            self._origin = Origin.from_bytes(self._origin)
        if number not in self._said:
            self._said.add(number)
            name = self._origin.images[number].path
            print(f"{name}: its prepared image is damaged ({folder}); made from the source again", file=sys.stderr)
        return np.frombuffer(self._origin.stored(number), np.uint8)

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


def checks_of(index: Path) -> Path:
    """The file of a version that holds a byte for each image: whether its bytes were checked since the version was built."""
    return index.with_suffix(".checked")


def _map_checks(path: Path, num_images: int) -> NDArray[np.bool_]:
    """Shared by all who read the version; where it is not there, each checks for itself."""
    try:
        with path.open("r+b") as opened:
            found = np.frombuffer(mmap.mmap(opened.fileno(), 0), np.bool_)
    except (OSError, ValueError):  # ValueError: it is empty
        found = np.zeros(0, np.bool_)
    return found if len(found) == num_images else np.zeros(num_images, np.bool_)


def _map(file: Path) -> NDArray[np.uint8]:
    """A file as read-only bytes."""
    with file.open("rb") as opened:
        return np.frombuffer(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
