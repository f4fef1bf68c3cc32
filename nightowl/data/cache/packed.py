"""The reader: the images of one dataset version by number, straight from the page cache.

Any number of processes and threads read at once, before and after a fork, and share one copy in memory; the kernel may drop
it at any time. While a reader lives, pruning leaves what it reads.
"""

import mmap
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nightowl.data.cache.entries import Key, Rows, from_parquet, keys
from nightowl.data.cache.place import Place, open_lock, share
from nightowl.data.cache.shards import PIXELS, damaged_in, read_commit
from nightowl.data.images import Size
from nightowl.errors import DataError


class PackedImages:
    """Images 0 to N-1, in the order they were built in. It can be sent to another process, which opens the same files."""

    def __init__(self, index: Path) -> None:
        """Open what `build_cache` returned. Lengths and marks are compared, bytes are not.

        Raises:
            DataError: when a part is gone or damaged; building again repairs it.
        """
        self.index = index
        place = Place(index.parents[1])
        self._form = place.form()
        in_use = open_lock(index.with_suffix(".use"))
        weakref.finalize(self, in_use.close)
        share(in_use)
        self._rows, names = _read(index)
        self._stored = [_map(place.shards / name) for name in names]
        _require_sound(place, self._rows, names)
        self._numbers: dict[str, int] | None = None

    def __reduce__(self) -> tuple[type["PackedImages"], tuple[Path]]:
        return PackedImages, (self.index,)

    def __len__(self) -> int:
        return len(self._rows)

    def image(self, number: int) -> NDArray[np.uint8]:
        """Pixels (h, w, 3), blue, green, red: in the raw form a read-only view of the file, in the JPEG form a new array."""
        row = self._rows[number]
        return self._form.decode(self.stored(number), int(row["height"]), int(row["width"]))

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


def _read(index: Path) -> tuple[Rows, list[str]]:
    try:
        return from_parquet(index.read_bytes())
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{index}: not an index of prepared images ({error}); build it again") from error


def _map(folder: Path) -> NDArray[np.uint8]:
    """The images' file of a shard, as read-only bytes."""
    if read_commit(folder) is None:
        raise DataError(f"{folder}: not whole; prepare the images again")
    with (folder / PIXELS).open("rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def _require_sound(place: Place, rows: Rows, names: list[str]) -> None:
    for number, name in enumerate(names):
        damaged = damaged_in(place.shards / name)
        lost: list[Key] = [key for key in keys(rows[rows["shard"] == number]) if key in damaged] if damaged else []
        if lost:
            raise DataError(f"{place.shards / name}: {len(lost)} images are damaged; prepare the images again")
