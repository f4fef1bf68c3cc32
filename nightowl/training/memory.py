"""Whether decoded images fit in memory, so that they need not be decoded again in each epoch. It changes no result."""

from collections.abc import Iterable
from pathlib import Path

from nightowl.data.manifest import Image

_FRACTION = 0.4  # of what is available: the rest is for the network, the loaders, and others
_CGROUP = Path("/sys/fs/cgroup")


def decoded_bytes(images: Iterable[Image], image_size: int) -> int:
    """Bytes of the images at 8 bits and three channels, the long side scaled to `image_size` pixels."""
    return sum(3 * image_size * -(-image_size * min(i.width, i.height) // max(i.width, i.height)) for i in images)


def fits_in_memory(num_bytes: int, available: int | None) -> bool:
    """Whether a moderate part of `available` bytes holds `num_bytes`; not when nobody knows what is available."""
    return available is not None and num_bytes <= available * _FRACTION


def available_bytes(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = _CGROUP) -> int | None:
    """Memory that a process may still take: the machine's, or less where a container is limited. None when unknown."""
    known = [value for value in (_of_machine(meminfo), _of_container(cgroup)) if value is not None]
    return min(known) if known else None


def _of_machine(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 if found else None


def _of_container(cgroup: Path) -> int | None:
    try:
        limit, used = (cgroup / "memory.max").read_text().strip(), int((cgroup / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return max(int(limit) - used, 0) if limit.isdigit() else None
