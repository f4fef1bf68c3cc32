"""A dataset version made ready: images that the cache lacks, or that were found damaged, are decoded and added as new shards;
then the version's index is published. Bytes that are there are not read: each image is checked when it is first read.

A build that is killed loses at most the shard it was writing. Two builds of one version take turns, and the second finds
everything there; builds of different versions run side by side. The memory that it takes does not grow with the images' bytes.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from nightowl.data.cache.catalogue import locate, rows_of
from nightowl.data.cache.entries import aligned, key_of_version
from nightowl.data.cache.forecast import forecast, memory_note, raw_bytes, require_room
from nightowl.data.cache.packed import checks_of
from nightowl.data.cache.place import LOCK, Place, holding, make_place, share, try_alone
from nightowl.data.cache.recipe import Origin, Recipe
from nightowl.data.cache.shards import ShardWriter, clear_scratch
from nightowl.data.cache.tables import to_parquet
from nightowl.data.cache.whole import LastDecoded
from nightowl.data.images import Size
from nightowl.data.manifest import Image
from nightowl.data.memory import available_bytes
from nightowl.data.threads import stream_in_threads
from nightowl.files import write_atomic
from nightowl.progress import Track, track

SHARD_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Means:
    """How a build goes about it; none of it changes what is built. `limit_bytes`: what a dataset version may take at most.
    `check_after_seconds`: within this time of a build of the same version, as by another rank, what was checked since counts.
    """

    limit_bytes: int | None = None
    shard_bytes: int = SHARD_BYTES
    check_after_seconds: float = 600
    say: Callable[[str], None] = print
    progress: Track = track


def build_cache(origin: Origin, root: Path, means: Means) -> Path:
    """The index under `root` of the images of `origin`; what was there already is not made anew.

    Raises:
        DataError: when an image is gone, changed since it was pinned, or cannot be decoded.
        StorageError: before anything is written, when it would not fit. OSError: when the disk fills up all the same.
    """
    images, recipe = origin.images, origin.recipe
    place = make_place(root, recipe.form)
    wanted = [recipe.key(image) for image in images]
    index = place.index(key_of_version(wanted))
    with _building(root, place), holding(index.with_suffix(".build")):
        found = locate(place, wanted)
        missing = {key: image for key, image in zip(wanted, images, strict=True) if key not in found}
        if missing:
            kept = sum(aligned(int(shard.rows[row]["num_bytes"])) for shard, row in found.values())
            _add(list(missing.values()), origin.source, recipe, place, means, kept)
            found = locate(place, wanted)
        write_atomic(index, to_parquet(*rows_of(wanted, found)))
        _begin_checks(index, len(images), means.check_after_seconds)
    return index


@contextmanager
def _building(root: Path, place: Place) -> Iterator[None]:
    """Keep pruning away; what killed builds left is cleared when nobody else builds."""
    with holding(root / LOCK, exclusive=False) as lock:
        if try_alone(lock):
            clear_scratch(place.shards)
        share(lock)
        yield


def _begin_checks(index: Path, num_images: int, after_seconds: float) -> None:
    """Have every image of the version checked by whoever reads it first, unless that was begun a moment ago."""
    checked = checks_of(index)
    found = checked.stat() if checked.exists() else None
    age = math.inf if found is None or found.st_size != num_images else time.time() - found.st_mtime
    if not 0 <= age <= after_seconds:  # less than 0: the clock has been set back since
        write_atomic(checked, bytes(num_images))


def _add(missing: Sequence[Image], source: Path, recipe: Recipe, place: Place, means: Means, kept_bytes: int) -> None:
    """Decode the missing images into new shards, after a forecast."""

    whole = LastDecoded(source)

    def prepare(image: Image) -> bytes:
        return recipe.stored(image, whole)

    expected = forecast(missing, recipe.form, raw_bytes(missing, recipe.image_size, recipe.rule), prepare)
    require_room(expected, recipe.form, place.folder, means.limit_bytes, kept_bytes)
    means.say(str(expected))
    note = memory_note(kept_bytes + expected.num_bytes, available_bytes())
    if note and recipe.form.name == "raw":
        means.say(note)
    with closing(stream_in_threads(prepare, missing, "preparing images", means.progress)) as made:
        _write(missing, made, recipe, place, means.shard_bytes)


def _write(
    missing: Sequence[Image], made: Generator[bytes, None, None], recipe: Recipe, place: Place, shard_bytes: int
) -> None:
    writer = ShardWriter(place.shards)
    try:
        for image, stored in zip(missing, made, strict=True):
            if writer.num_bytes and writer.num_bytes + len(stored) > shard_bytes:
                writer.commit()
                writer = ShardWriter(place.shards)
            writer.add(recipe.key(image), Size(image.width, image.height), stored)
        writer.commit()
    except BaseException:
        writer.discard()
        raise
