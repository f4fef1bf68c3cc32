"""How much memory a training takes, for people who watch it: of the machine, or of the GPU that it runs on."""

import os
import resource
import sys
from pathlib import Path

import torch

_STATM = Path("/proc/self/statm")


def peak_bytes() -> int:
    """The most memory of the machine that this process has had so far."""
    unit = 1 if sys.platform == "darwin" else 1024  # getrusage(2)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def resident_bytes(statm: Path = _STATM) -> int | None:
    """The memory of the machine that this process has now, shared pages of files included; None where that is not told."""
    try:
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return None


def memory_in_words(device: str) -> str:
    """The most that torch has had of the GPU `device`, of all that it has; on the CPU, what the process has now."""
    if device.startswith("cuda"):
        return gpu_in_words(torch.cuda.max_memory_reserved(device), torch.cuda.get_device_properties(device).total_memory)
    now = resident_bytes()
    return f"memory {_gigabytes(now)} GB" if now is not None else f"memory up to {_gigabytes(peak_bytes())} GB"


def gpu_in_words(peak: int, total: int) -> str:
    return f"GPU memory up to {_gigabytes(peak)} of {_gigabytes(total)} GB"


def _gigabytes(num: int) -> str:
    return f"{num / 1e9:.1f}"
