"""How much of a training's time goes into waiting for data: the figure that tells whether the loader keeps the device busy."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DataWait:
    """Seconds of some steps: waiting for their batches, and in all, the waiting included."""

    waited_seconds: float = 0.0
    total_seconds: float = 0.0
    num_steps: int = 0

    @property
    def share(self) -> float | None:
        """The part of the time that was waiting, from 0 to 1; None before there was a step."""
        return self.waited_seconds / self.total_seconds if self.total_seconds > 0 else None

    def __add__(self, other: "DataWait") -> "DataWait":
        return DataWait(
            self.waited_seconds + other.waited_seconds,
            self.total_seconds + other.total_seconds,
            self.num_steps + other.num_steps,
        )


class StallMeter:
    """Measures a loop over batches from outside: what is between two batches is the step."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.last = DataWait()
        self.all = DataWait()

    def watch(self, batches: Iterable[T]) -> Iterator[T]:
        """The same batches; `last` is the step before the one that is handed out, `all` every step so far."""
        source = iter(batches)
        while True:
            asked = self._clock()
            try:
                batch = next(source)
            except StopIteration:
                return
            got = self._clock()
            yield batch
            del batch  # its memory is the loader's again
            self.last = DataWait(got - asked, self._clock() - asked, 1)
            self.all += self.last
