"""How fast each artefact is on this machine: percentiles of latency and throughput, warm, at a stated number of threads.

All run in turn, call by call, so that what else the machine does falls on all of them alike.
"""

import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.runners import Runner
from nightowl.evaluation.timings import ArtefactSpeed, Speed, Timing

BATCHES = (1, 8)
WARM_CALLS, FEWEST_CALLS, MAX_CALLS = 2, 5, 100
SECONDS = 4.0  # for one artefact at one batch size; then FEWEST_CALLS are enough

Images = NDArray[np.float32]


def measure_speed(subjects: Mapping[str, tuple[Runner, Images]], threads: int) -> Speed:
    """Time every runner on its own images (N, 3, S, S), in batches of each size in BATCHES. The runners were opened with
    `threads` threads; torch is held to as many meanwhile."""
    with torch_threads(threads):
        timed = [_timed(subjects, batch) for batch in BATCHES]
    artefacts = [ArtefactSpeed(name=name, timings=tuple(one[name] for one in timed)) for name in subjects]
    return Speed(cpu=cpu_model(), threads=threads, artefacts=tuple(artefacts))


def _timed(subjects: Mapping[str, tuple[Runner, Images]], batch: int) -> dict[str, Timing]:
    seconds: dict[str, list[float]] = {name: [] for name in subjects}
    for runner, images in subjects.values():
        for _ in range(WARM_CALLS):
            runner(_batch(images, 0, batch))
    ends = time.perf_counter() + SECONDS * len(subjects)
    for number in range(MAX_CALLS):
        if number >= FEWEST_CALLS and time.perf_counter() > ends:
            break
        for name, (runner, images) in subjects.items():
            given = _batch(images, number * batch, batch)
            started = time.perf_counter()
            runner(given)
            seconds[name].append(time.perf_counter() - started)
    return {name: timing_of(batch, calls) for name, calls in seconds.items()}


def timing_of(batch: int, seconds: list[float]) -> Timing:
    """The figures of calls that took `seconds` each."""
    p50, p95, p99 = (float(value) for value in np.percentile(seconds, [50, 95, 99]))
    return Timing(
        batch=batch,
        num_calls=len(seconds),
        p50_seconds=p50,
        p95_seconds=p95,
        p99_seconds=p99,
        images_per_second=batch * len(seconds) / sum(seconds),
    )


def _batch(images: Images, start: int, size: int) -> Images:
    return images[np.arange(start, start + size) % len(images)]


@contextmanager
def torch_threads(num: int) -> Iterator[None]:
    """Hold torch to `num` threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(num)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name, or `unknown`."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, named), "") or platform.processor() or "unknown"
