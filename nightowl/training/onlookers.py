"""All who look on at a training: the display, the tools that draw figures, and the monitor of the GPU.

It is a watcher that tells the display everything, and at each epoch's end gives the figures, with speed, waiting and memory, to
all sinks. Nothing here bears on the result.
"""

import time
from collections.abc import Callable

from nightowl.training.hardware import GpuSample, HardwareMonitor
from nightowl.training.memory_use import peak_bytes
from nightowl.training.scalars import Sinks
from nightowl.training.watch import EpochEnd, Start, Watcher


class Onlookers:
    """A watcher of rank 0."""

    def __init__(
        self, shown: Watcher, sinks: Sinks, monitor: HardwareMonitor, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._shown, self._sinks, self._monitor, self._clock = shown, sinks, monitor, clock
        self._images_a_batch, self._batches, self._waited, self._begun = 0.0, 0, 0.0, clock()
        self._seconds: float | None = None  # that this epoch's steps took

    def started(self, start: Start) -> None:
        self._images_a_batch = start.num_images / start.num_batches
        self._begun = self._clock()
        self._shown.started(start)

    def batch_done(self, epoch: int, batch: int, losses: dict[str, float], waited_seconds: float) -> None:
        self._batches += 1
        self._waited += waited_seconds
        self._shown.batch_done(epoch, batch, losses, waited_seconds)

    def validating(self, epoch: int) -> None:
        self._seconds = self._clock() - self._begun
        self._shown.validating(epoch)

    def epoch_done(self, end: EpochEnd) -> None:
        self._sinks.write(end.epoch, scalars(end) | self._speed() | gpu_scalars(self._monitor.newest()))
        self._monitor.check()
        self._shown.epoch_done(end)
        self._batches, self._waited, self._begun, self._seconds = 0, 0.0, self._clock(), None

    def note(self, text: str) -> None:
        self._shown.note(text)

    def _speed(self) -> dict[str, float]:
        """Of the steps that this process took in the epoch; nothing where it took none."""
        memory = {"memory/peak_bytes": float(peak_bytes())}
        if not self._batches or not self._seconds:
            return memory
        images = self._batches * self._images_a_batch
        return {"speed/images_per_second": images / self._seconds, "speed/waiting": self._waited / self._seconds} | memory


def scalars(end: EpochEnd) -> dict[str, float]:
    """Losses on train, figures on val and learning rates, under the names of `scalar_name`; what has no value is absent."""
    figures = end.figures
    told = {
        **{f"train/{name}": value for name, value in end.losses.items()},
        "val/precision": figures.precision,
        "val/recall": figures.recall,
        "val/mAP50": figures.map50,
        "val/mAP50-95": figures.map50_95,
        **{f"lr/{name}": rate for name, rate in end.rates.items()},
    }
    return {name: value for name, value in told.items() if value is not None}


def gpu_scalars(sample: GpuSample | None) -> dict[str, float]:
    """What the GPU tells of itself; what it does not tell is absent."""
    if sample is None:
        return {}
    told = {
        "gpu/busy_percent": sample.busy_percent,
        "gpu/used_bytes": sample.used_bytes,
        "gpu/celsius": sample.celsius,
        "gpu/clock_mhz": sample.clock_mhz,
        "gpu/watts": sample.watts,
    }
    return {name: float(value) for name, value in told.items() if value is not None}
