"""How much memory a process may still take: the machine's, or less where a container is limited."""

from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def available_bytes(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = _CGROUP) -> int | None:
    """Bytes that are free or can be freed at once, as pages of files can. None when nobody knows."""
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
    """What a limited container has left; pages of files that it has not used lately count as left."""
    try:
        limit, used = (cgroup / "memory.max").read_text().strip(), int((cgroup / "memory.current").read_text())
        idle = [line.split() for line in (cgroup / "memory.stat").read_text().splitlines() if line.startswith("inactive_file ")]
    except (OSError, ValueError):
        return None
    return max(int(limit) - used + (int(idle[0][1]) if idle else 0), 0) if limit.isdigit() else None
