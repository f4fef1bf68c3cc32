"""What has not been used goes: dataset versions by age, then the least recently used until the cache has its size; and shards
that no version left needs.

What a reader has open stays, and so does what was used within the last hour. The images of a build that was killed belong to no
version yet: they stay as long as a version would, unless room is needed.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from nightowl.data.cache.entries import aligned
from nightowl.data.cache.place import LOCK, Place, places, trying
from nightowl.data.cache.shards import MARKER, PIXELS, clear_scratch, remove_shard
from nightowl.data.cache.tables import from_parquet

GRACE_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Version:
    """A dataset version in a cache: its index, when it was last used (seconds), whether a reader has it open now."""

    index: Path
    num_images: int
    num_bytes: int
    shards: frozenset[Path]
    used_at: float
    is_open: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """A shard on disk: its folder, bytes, and when it was made (seconds)."""

    folder: Path
    num_bytes: int
    made_at: float


@dataclass(frozen=True, slots=True)
class Pruned:
    """What went. `was_busy`: a build was running, so nothing was touched."""

    num_versions: int = 0
    num_shards: int = 0
    num_bytes: int = 0
    was_busy: bool = False


def plan_prune(
    versions: Sequence[Version], shards: Sequence[Stored], now: float, max_age_seconds: float, max_bytes: int | None
) -> tuple[list[Version], list[Stored]]:
    """The versions and shards to remove, so that nothing unused is older than the limit and all of it fits, if it can."""
    settled = [version for version in versions if not version.is_open and now - version.used_at > GRACE_SECONDS]
    gone = [version for version in settled if now - version.used_at > max_age_seconds]
    waiting = sorted((version for version in settled if version not in gone), key=lambda version: version.used_at)
    early = _unneeded(versions, shards)
    while True:
        left = [version for version in versions if version not in gone]
        young = [shard for shard in early if now - shard.made_at <= max_age_seconds]
        unneeded = [shard for shard in _unneeded(left, shards) if shard not in young]
        total = sum(shard.num_bytes for shard in shards) - sum(shard.num_bytes for shard in unneeded)
        if max_bytes is None or total <= max_bytes:
            return gone, unneeded
        if young:
            early = []
        elif waiting:
            gone.append(waiting.pop(0))
        else:
            return gone, unneeded


def prune(root: Path, max_age_seconds: float, max_bytes: int | None, now: float | None = None) -> Pruned:
    """Remove from every cache under `root` what `plan_prune` says. While somebody builds, nothing is done."""
    if not root.exists():
        return Pruned()
    with trying(root / LOCK) as alone:
        if not alone:
            return Pruned(was_busy=True)
        here = places(root)
        for place in here:
            clear_scratch(place.shards)
        gone, unneeded = plan_prune(
            versions_in(here), shards_in(here), time.time() if now is None else now, max_age_seconds, max_bytes
        )
        removed = [version for version in gone if _remove(version)]
        needed = frozenset(folder for version in versions_in(here) for folder in version.shards)
        dropped = [shard for shard in unneeded if shard.folder not in needed]
        for shard in dropped:
            remove_shard(shard.folder)
        return Pruned(len(removed), len(dropped), sum(shard.num_bytes for shard in dropped))


def versions_in(here: Iterable[Place]) -> list[Version]:
    """The dataset versions of these caches."""
    return [_version(place, path) for place in here for path in sorted(place.datasets.glob("[!.]*.parquet"))]


def shards_in(here: Iterable[Place]) -> list[Stored]:
    """The shards of these caches, whole or not."""
    return [
        Stored(folder, _length(folder / PIXELS), (folder / MARKER if (folder / MARKER).exists() else folder).stat().st_mtime)
        for place in here
        for folder in sorted(place.shards.glob("[!.]*"))
    ]


def _unneeded(versions: Iterable[Version], shards: Iterable[Stored]) -> list[Stored]:
    needed = frozenset(folder for version in versions for folder in version.shards)
    return [shard for shard in shards if shard.folder not in needed]


def _version(place: Place, index: Path) -> Version:
    """What an index says; one that cannot be read needs nothing, as nobody can use it."""
    names, sizes = _columns(index)
    shards = frozenset(place.shards / name for name in names)
    with trying(index.with_suffix(".use")) as alone:
        return Version(index, len(sizes), sum(map(aligned, sizes)), shards, index.stat().st_mtime, not alone)


def _columns(index: Path) -> tuple[frozenset[str], list[int]]:
    """The shards that an index names, and the bytes of each image."""
    try:
        rows, names = from_parquet(index.read_bytes())
    except (OSError, KeyError, TypeError, ValueError, OverflowError, pa.ArrowException):
        return frozenset(), []
    return frozenset(names), rows["num_bytes"].tolist()


def _remove(version: Version) -> bool:
    """Remove the version's index, unless somebody has opened it since."""
    with trying(version.index.with_suffix(".use")) as alone:
        if alone:
            for suffix in (".parquet", ".checked", ".build", ".use"):
                version.index.with_suffix(suffix).unlink(missing_ok=True)
        return alone


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
