"""What preparing images will take, in bytes and seconds, said before it starts; refused when the disk has no room for it."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nightowl.data.cache.entries import ALIGNMENT, aligned
from nightowl.data.cache.forms import Form
from nightowl.data.manifest import Image
from nightowl.data.resize import Rule, letterbox_size, training_size
from nightowl.data.threads import stream_in_threads
from nightowl.errors import StorageError
from nightowl.progress import untracked

_ONE_IN, _AT_MOST = 32, 32
_FEWEST = 8  # a time by fewer is that of the first image, which is made cold
_SPARE_BYTES = 16 << 20  # left on the disk for indexes and for others


@dataclass(frozen=True, slots=True)
class Forecast:
    """Bytes and seconds for `num_images`, judged by `num_sampled` of them; raw bytes are counted, not judged. Seconds are None
    where too few were sampled to tell."""

    num_images: int
    num_sampled: int
    num_bytes: int
    seconds: float | None

    def __str__(self) -> str:
        images = "1 image" if self.num_images == 1 else f"{self.num_images} images"
        said = f"preparing {images}: {gigabytes(self.num_bytes)}"
        if self.seconds is None:
            return said
        return f"{said}, about {self.seconds:.0f} s (judged by {self.num_sampled} images made first)"


def forecast(images: Sequence[Image], form: Form, raw_bytes: int, prepare: Callable[[Image], bytes]) -> Forecast:
    """What `prepare` of all `images` will take, from a few taken evenly; `raw_bytes` is what their pixels take.

    Where bytes need no judging, and too few would be taken to judge the time by, none is.
    """
    step = max(_ONE_IN, -(-len(images) // _AT_MOST))
    sampled = images[step // 2 :: step] or images[:1]
    if form.name == "raw" and len(sampled) < _FEWEST:
        return Forecast(len(images), 0, raw_bytes, None)
    begun = time.monotonic()
    stored = list(stream_in_threads(prepare, sampled, "sampling", untracked))
    scale = len(images) / len(sampled)
    seconds = (time.monotonic() - begun) * scale if len(sampled) >= _FEWEST else None
    num_bytes = raw_bytes if form.name == "raw" else round(sum(map(len, stored)) * scale) + ALIGNMENT * len(images)
    return Forecast(len(images), len(sampled), num_bytes, seconds)


def raw_bytes(images: Sequence[Image], image_size: int, rule: Rule) -> int:
    """Bytes of the pixels of `images` at training size, each aligned."""
    by_rule = training_size if rule == "load_image" else letterbox_size
    sizes = (by_rule(image.width, image.height, image_size) for image in images)
    return sum(aligned(3 * size.width * size.height) for size in sizes)


def require_room(expected: Forecast, form: Form, folder: Path, limit_bytes: int | None, kept_bytes: int = 0) -> None:
    """Raises StorageError when the disk of `folder` has no room for what is expected, or the limit of the cache none for that
    and for the `kept_bytes` which the same dataset version has there already."""
    free = shutil.disk_usage(folder).free
    needed = expected.num_bytes + _SPARE_BYTES
    smaller = "set prepare.cache: jpeg in params (about a tenth of the bytes), " if form.name == "raw" else ""
    if needed > free:
        raise StorageError(
            f"{folder}: the prepared cache needs {gigabytes(needed)} for {expected.num_images} images, {gigabytes(free)} are "
            f"free; {smaller}free some space, or set NIGHTOWL_HOME to a larger disk"
        )
    total = kept_bytes + expected.num_bytes
    if limit_bytes is not None and total > limit_bytes:
        raise StorageError(
            f"{folder}: this dataset version needs {gigabytes(total)}, the setting cache_max_gb allows "
            f"{gigabytes(limit_bytes)}; {smaller and smaller + 'or '}raise it"
        )


def memory_note(num_bytes: int, available: int | None) -> str | None:
    """What to say when the pages of a cache of `num_bytes` do not all fit into the memory that is available."""
    if available is None or num_bytes <= available:
        return None
    return (
        f"the prepared images are {gigabytes(num_bytes)}, the memory available is {gigabytes(available)}: each epoch reads "
        "from the disk; prepare.cache: jpeg in params takes about a tenth"
    )


def gigabytes(num_bytes: int) -> str:
    """Bytes for people: MB or GB, decimal."""
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:.1f} MB"
