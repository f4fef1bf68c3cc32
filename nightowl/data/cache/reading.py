"""Opens a dataset version that was built: lengths and marks are compared; bytes are when they are read."""

from pathlib import Path

import pyarrow as pa

from nightowl.data.cache.damage import DAMAGED, damaged_in
from nightowl.data.cache.entries import Rows, keys
from nightowl.data.cache.packed import PackedImages
from nightowl.data.cache.place import Place
from nightowl.data.cache.recipe import Origin
from nightowl.data.cache.shards import PIXELS, read_commit
from nightowl.data.cache.tables import from_parquet
from nightowl.errors import DataError


def open_packed(index: Path, origin: Origin | None = None) -> PackedImages:
    """The images of what `build_cache` returned; from `origin` one that is damaged is made again when it is read.

    Raises:
        DataError: when a part is gone or damaged; building again repairs it.
    """
    place = Place(index.parents[1])
    rows, names = _read(index)
    for number, name in enumerate(names):
        _require_sound(place.shards / name, rows[rows["shard"] == number])
    return PackedImages(index, place.form(), rows, [place.shards / name / PIXELS for name in names], origin)


def _read(index: Path) -> tuple[Rows, list[str]]:
    try:
        return from_parquet(index.read_bytes())
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{index}: not an index of prepared images ({error}); prepare the images again") from error


def _require_sound(folder: Path, rows: Rows) -> None:
    if read_commit(folder) is None:
        raise DataError(f"{folder}: not whole; prepare the images again")
    damaged = damaged_in(folder)
    if damaged is None:
        raise DataError(f"{folder / DAMAGED}: the list of its damaged images cannot be read; prepare the images again")
    num_lost = sum(key in damaged for key in keys(rows)) if damaged else 0
    if num_lost:
        raise DataError(f"{folder}: {num_lost} images are damaged; prepare the images again")
