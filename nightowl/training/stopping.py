"""Requests to stop: noted when they come, obeyed at the next step, when all ranks save the same state.

Signal handlers only set a flag here: what they raised could be swallowed by library code, or leave ranks apart.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSource(Protocol):
    """Something that may ask a training to stop; asked at each step, so it must answer at once."""

    def reason(self) -> str | None:
        """Why to stop, in words; None while there is no need to."""


@dataclass
class SignalStop:
    """Asked by SIGTERM or SIGINT while `listening`."""

    received: list[int] = field(default_factory=list)

    def reason(self) -> str | None:
        return f"asked to stop ({signal.Signals(self.received[0]).name})" if self.received else None

    @contextmanager
    def listening(self) -> Iterator["SignalStop"]:
        """Take the place of the handlers in force; only the main thread has any. They are told afterwards by `reason`."""

        def note(number: int, frame: FrameType | None) -> None:
            self.received.append(number)

        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = {number: signal.signal(number, note) for number in _SIGNALS}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass(frozen=True)
class Deadline:
    """Asks to stop from `at` on, a time of `clock`, seconds."""

    at: float
    clock: Callable[[], float] = time.time

    def reason(self) -> str | None:
        return "the deadline has come" if self.clock() >= self.at else None


@dataclass(frozen=True)
class AnyStop:
    """Asks when any of `sources` asks; the first that does gives the reason."""

    sources: Sequence[StopSource]

    def reason(self) -> str | None:
        return next((reason for source in self.sources if (reason := source.reason())), None)
