"""Requests to stop, or only to save: noted when they come, obeyed at the next step, when all ranks save the same state.

Signal handlers only set a flag here: what they raised could be swallowed by library code, or leave ranks apart.
"""

import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from nightowl.errors import Preempted
from nightowl.processes import ALREADY, say_at_once

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSource(Protocol):
    """Something that may ask a training to stop; asked at each step, so it must answer at once."""

    def reason(self) -> str | None:
        """Why to stop, in words; None while there is no need to."""


class SignalStop:
    """Asked by SIGTERM or SIGINT while `listening`; passed on afterwards, to the handler that was in force."""

    def __init__(self) -> None:
        self._received: list[signal.Signals] = []

    def reason(self) -> str | None:
        return "asked to stop" if self._received else None

    @contextmanager
    def listening(self) -> Iterator["SignalStop"]:
        """Note signals for the duration of the block; only the main thread has handlers.

        Raises:
            what the former handler raises for the first signal, once the block has ended (by Preempted, or of itself).
        """
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        try:
            yield self
        except Preempted as stopped:
            _reset(before)
            self._pass_on(before)
            raise stopped
        finally:
            _reset(before)
        self._pass_on(before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._received and number == signal.SIGINT:  # somebody at the keyboard
            say_at_once(ALREADY)
        self._received.append(signal.Signals(number))

    def _pass_on(self, before: Mapping[signal.Signals, Any]) -> None:
        handler = before[self._received[0]] if self._received else None
        if callable(handler):
            handler(self._received[0], None)


def _reset(before: Mapping[signal.Signals, Any]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)


@dataclass(frozen=True)
class AnyStop:
    """Asks when any of `sources` asks; the first that does gives the reason."""

    sources: Sequence[StopSource]

    def reason(self) -> str | None:
        return next((reason for source in self.sources if (reason := source.reason())), None)


class SaveRequest:
    """Asks for a state to be saved, once for each time that the file `path` is touched; None asks for none."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._answered = self._touched()

    def asks(self) -> bool:
        """Cheap: to be asked at each step."""
        return self._touched() != self._answered

    def answered(self) -> None:
        """A state is being saved."""
        self._answered = self._touched()

    def _touched(self) -> int | None:
        if self._path is None:
            return None
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return None
