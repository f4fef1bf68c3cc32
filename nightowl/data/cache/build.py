"""A dataset version made ready: images that the cache lacks, or whose bytes are damaged, are decoded and added as new shards;
then the version's index is published.

A build that is killed loses at most the shard it was writing. Two builds of one version take turns, and the second finds
everything there; builds of different versions run side by side. The memory that it takes does not grow with the images' bytes.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nightowl.data.cache.catalogue import keep_sound, locate, rows_of
from nightowl.data.cache.entries import Key, aligned, key_of
from nightowl.data.cache.forecast import forecast, memory_note, raw_bytes, require_room
from nightowl.data.cache.forms import Form
from nightowl.data.cache.place import LOCK, Place, holding, make_place, share, try_alone
from nightowl.data.cache.shards import ShardWriter, clear_scratch
from nightowl.data.cache.tables import to_parquet
from nightowl.data.cache.whole import LastDecoded, cut
from nightowl.data.images import Size
from nightowl.data.manifest import Image
from nightowl.data.memory import available_bytes
from nightowl.data.resize import Rule, resized
from nightowl.data.threads import stream_in_threads
from nightowl.errors import DataError
from nightowl.files import canonical_json, sha256_bytes, write_atomic
from nightowl.progress import Track, track

SHARD_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides the pixels: the training size, the rule of rounding, and the form they are kept in."""

    image_size: int
    rule: Rule
    form: Form

    def key(self, image: Image) -> Key:
        return key_of(image, self.image_size, self.rule)

    def key_of_all(self, images: Sequence[Image]) -> str:
        """The name that an index of `images`, in that order, has among those of its form."""
        return sha256_bytes(canonical_json([self.key(image) for image in images]).encode())


@dataclass(frozen=True, slots=True)
class Means:
    """How a build goes about it; none of it changes what is built. `limit_bytes`: what a dataset version may take at most.
    `check_after_seconds`: within this time of a build of the same version its bytes are not checked again, as by other ranks.
    """

    limit_bytes: int | None = None
    shard_bytes: int = SHARD_BYTES
    check_after_seconds: float = 600
    say: Callable[[str], None] = print
    progress: Track = track


def build_cache(images: Sequence[Image], source: Path, recipe: Recipe, root: Path, means: Means) -> Path:
    """The index under `root` of `images`, whose files lie under `source`; what was there already is checked, not made anew.

    Raises:
        DataError: when an image is gone, changed since it was pinned, or cannot be decoded.
        StorageError: before anything is written, when it would not fit. OSError: when the disk fills up all the same.
    """
    place = make_place(root, recipe.form)
    wanted = [recipe.key(image) for image in images]
    index = place.index(recipe.key_of_all(images))
    with _building(root, place), holding(index.with_suffix(".build")):
        found = locate(place, wanted)
        if _age_seconds(index) > means.check_after_seconds:
            found = keep_sound(found, means.progress)
        missing = {key: image for key, image in zip(wanted, images, strict=True) if key not in found}
        if missing:
            kept = sum(aligned(int(shard.rows[row]["num_bytes"])) for shard, row in found.values())
            _add(list(missing.values()), source, recipe, place, means, kept)
            found = locate(place, wanted)
        write_atomic(index, to_parquet(*rows_of(wanted, found)))
    return index


@contextmanager
def _building(root: Path, place: Place) -> Iterator[None]:
    """Keep pruning away; what killed builds left is cleared when nobody else builds."""
    with holding(root / LOCK, exclusive=False) as lock:
        if try_alone(lock):
            clear_scratch(place.shards)
        share(lock)
        yield


def _age_seconds(index: Path) -> float:
    """Time since the version was last built or found whole; endless where the clock has been set back since."""
    age = time.time() - index.stat().st_mtime if index.exists() else math.inf
    return age if age >= 0 else math.inf


def _add(missing: Sequence[Image], source: Path, recipe: Recipe, place: Place, means: Means, kept_bytes: int) -> None:
    """Decode the missing images into new shards, after a forecast."""

    whole = LastDecoded(source)

    def prepare(image: Image) -> bytes:
        return recipe.form.encode(pixels_of(image, whole, recipe))

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


def pixels_of(image: Image, whole: LastDecoded, recipe: Recipe) -> NDArray[np.uint8]:
    """The pixels BGR (h, w, 3) of an image, or of its window, by `recipe`, before they take their form. Raises DataError."""
    pixels = cut(whole.pixels(image), image.window)
    if pixels.shape[:2] != (image.height, image.width):
        raise DataError(
            f"{image.path}: {pixels.shape[1]}x{pixels.shape[0]} pixels, the manifest says {image.width}x{image.height}; "
            "pin the inputs again"
        )
    key = recipe.key(image)
    return resized(pixels, Size(key.width, key.height))
