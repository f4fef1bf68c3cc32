"""The figures of a training over its epochs, for tools that draw them while it runs.

A sink takes one dictionary an epoch. One that fails is said once and left alone: watching never stops a training.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

CLOSING_SECONDS = 30.0
_NAMES = {
    "metrics/precision(B)": "val/precision",
    "metrics/recall(B)": "val/recall",
    "metrics/mAP50(B)": "val/mAP50",
    "metrics/mAP50-95(B)": "val/mAP50-95",
}


class Sink(Protocol):
    """Somewhere that scalars go. What a method raises is told, and ends the use of this sink alone."""

    def write(self, epoch: int, scalars: Mapping[str, float]) -> None:
        """The figures of an epoch, from 1. After a resume an epoch may come again: its figures are the same."""

    def close(self) -> None: ...


def scalar_name(column: str) -> str:
    """The name of a column of results.csv among scalars: `train/box_loss` as it is, `metrics/mAP50(B)` as `val/mAP50`."""
    return _NAMES.get(column, column)


class Sinks:
    """All sinks of a training, of which none can harm it."""

    def __init__(self, sinks: Sequence[Sink], say: Callable[[str], None]) -> None:
        self._sinks, self._say = list(sinks), say

    def write(self, epoch: int, scalars: Mapping[str, float]) -> None:
        self._each(lambda sink: sink.write(epoch, scalars))

    def close(self) -> None:
        self._each(lambda sink: sink.close())

    def _each(self, use: Callable[[Sink], None]) -> None:
        for sink in tuple(self._sinks):
            try:
                use(sink)
            except Exception as error:  # noqa: BLE001  a sink is a guest: whatever goes wrong in it must not end a training
                self._sinks.remove(sink)
                told = " ".join(str(error).split())[:300] or type(error).__name__
                self._say(f"{type(sink).__name__}: no more figures are written there: {told}; the training goes on")


class Behind:
    """A sink that another one writes for in a thread, so that a server which answers late holds no epoch up. What the other
    raises is raised at the next call here."""

    def __init__(self, make: Callable[[], Sink]) -> None:
        """`make` gives the other, once there is something to write; it is called in the thread, too."""
        self._make = make
        self._error: Exception | None = None
        self._waiting: SimpleQueue[tuple[int, dict[str, float]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def write(self, epoch: int, scalars: Mapping[str, float]) -> None:
        self._raise()
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, name="scalars", daemon=True)
            self._thread.start()
        self._waiting.put((epoch, dict(scalars)))

    def close(self) -> None:
        """Wait for what was written, but not for long."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(CLOSING_SECONDS)
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _follow(self) -> None:
        try:
            sink = self._make()
            while (figures := self._waiting.get()) is not None:
                sink.write(*figures)
            sink.close()
        except Exception as error:  # noqa: BLE001  the border of a thread: it is raised where the sink is used
            self._error = error


class TensorBoardSink:
    """Event files in `folder`; what a process before this one wrote of an epoch that comes again is hidden by TensorBoard."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: SummaryWriter | None = None

    def write(self, epoch: int, scalars: Mapping[str, float]) -> None:
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter  # a second that the first step need not wait for

            self._writer = SummaryWriter(str(self._folder), purge_step=epoch)
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, epoch)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
