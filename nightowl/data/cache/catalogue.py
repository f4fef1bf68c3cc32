"""Where the images of a cache lie, and whether their bytes are still what was written."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from nightowl.data.cache.damage import mark_damaged
from nightowl.data.cache.entries import ROW, Key, Rows, is_sound, keys
from nightowl.data.cache.place import Place
from nightowl.data.cache.shards import PIXELS, Shard, read_shards
from nightowl.data.threads import stream_in_threads
from nightowl.progress import Track

Found = dict[Key, tuple[Shard, int]]
_CHECKED_AT_ONCE = 32  # images a thread is handed: one is checked in less time than handing it over takes


def locate(place: Place, wanted: Sequence[Key]) -> Found:
    """The shard and row of each wanted image that the cache has; the newest, where there are several."""
    needed = frozenset(wanted)
    shards = read_shards(place.shards)
    return {key: (shard, number) for shard in shards for number, key in enumerate(keys(shard.rows)) if key in needed}


def everything(shard: Shard) -> Found:
    """All images of one shard."""
    return {key: (shard, number) for number, key in enumerate(keys(shard.rows))}


def keep_sound(found: Found, progress: Track) -> Found:
    """Those whose bytes agree with their checksum. The others are marked, so that nobody finds them again."""
    folders = {shard.folder for shard, _ in found.values()}
    stored = {folder: np.memmap(folder / PIXELS, np.uint8, "r") for folder in folders}
    order, sound, damaged = list(found), Found(), defaultdict[Path, list[Key]](list)
    parts = [order[first : first + _CHECKED_AT_ONCE] for first in range(0, len(order), _CHECKED_AT_ONCE)]

    def check(part: list[Key]) -> list[bool]:
        return [is_sound(shard.rows[row], stored[shard.folder]) for shard, row in (found[key] for key in part)]

    agree = chain.from_iterable(stream_in_threads(check, parts, "checking prepared images", progress))
    for key, agrees in zip(order, agree, strict=True):
        if agrees:
            sound[key] = found[key]
        else:
            damaged[found[key][0].folder].append(key)
    for folder, lost in damaged.items():
        mark_damaged(folder, lost)
    return sound


def rows_of(wanted: Sequence[Key], found: Found) -> tuple[Rows, list[str]]:
    """The rows of `wanted`, in that order, and the names of the shards that they count."""
    names = sorted({shard.name for shard, _ in found.values()})
    numbers = {name: number for number, name in enumerate(names)}
    places = [found[key] for key in wanted]
    rows = np.array([shard.rows[row] for shard, row in places], ROW)
    rows["shard"] = [numbers[shard.name] for shard, _ in places]
    return rows, names
