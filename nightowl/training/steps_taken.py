"""From which optimizer step a training went on and which it took last, in a small file beside it: they say how many steps are
done again after a kill. Written at most every `EVERY_SECONDS`, and when steps are over, without waiting for the disk."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from nightowl.training.watch import EpochEnd, Start, Watcher

EVERY_SECONDS = 0.2


class Steps(NamedTuple):
    """Steps count from the beginning of the training. `first`: how many were done when this process took over."""

    first: int
    last: int


class StepsTaken:
    """A watcher that notes the step in `path` and passes everything on to `shown`."""

    def __init__(self, shown: Watcher, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._shown, self._path, self._clock = shown, path, clock
        self._num_batches, self._first, self._last, self._told, self._noted = 0, 0, 0, 0, float("-inf")

    def started(self, start: Start) -> None:
        self._num_batches = start.num_batches
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._first = (start.first_epoch - 1) * start.num_batches + start.first_step
        self._last = self._first
        self._note()
        self._shown.started(start)

    def batch_done(self, epoch: int, batch: int, losses: dict[str, float], waited_seconds: float) -> None:
        self._last = (epoch - 1) * self._num_batches + batch
        if self._clock() - self._noted >= EVERY_SECONDS:
            self._note()
        self._shown.batch_done(epoch, batch, losses, waited_seconds)

    def validating(self, epoch: int) -> None:
        self.close()
        self._shown.validating(epoch)

    def epoch_done(self, end: EpochEnd) -> None:
        self._shown.epoch_done(end)

    def note(self, text: str) -> None:
        self._shown.note(text)

    def close(self) -> None:
        """Have the last step in the file, however soon it came after the one before."""
        if self._last != self._told:
            self._note()

    def _note(self) -> None:
        self._noted, self._told = self._clock(), self._last
        beside = self._path.with_name(f".{self._path.name}")
        with suppress(OSError):  # a full disk costs a figure of the account, not the training
            beside.write_text(f"{self._first} {self._last}")
            os.replace(beside, self._path)


def steps_taken(path: Path) -> Steps | None:
    """What the file says; None when no training has begun."""
    try:
        return Steps(*map(int, path.read_text().split()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
