"""Every prepared image read again and held against its checksum; what is damaged is marked, and made anew when next needed."""

from dataclasses import dataclass
from pathlib import Path

from nightowl.data.cache.catalogue import everything, keep_sound
from nightowl.data.cache.place import LOCK, holding, places
from nightowl.data.cache.shards import read_shard
from nightowl.progress import Track


@dataclass(frozen=True, slots=True)
class Verified:
    """How one shard was found. `is_whole`: its marker, index and length agree; else none of its images are used."""

    folder: Path
    is_whole: bool
    num_images: int
    num_damaged: int


def verify(root: Path, progress: Track) -> list[Verified]:
    """All shards of every cache under `root`, read whole. Images already known as damaged count no more."""
    if not root.exists():
        return []
    with holding(root / LOCK, exclusive=False):
        folders = [folder for place in places(root) for folder in sorted(place.shards.glob("[!.]*"))]
        return [_verify(folder, progress) for folder in folders]


def _verify(folder: Path, progress: Track) -> Verified:
    shard = read_shard(folder)
    if shard is None:
        return Verified(folder, False, 0, 0)
    num_images = len(shard.rows)
    return Verified(folder, True, num_images, num_images - len(keep_sound(everything(shard), progress)))
