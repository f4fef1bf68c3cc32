"""Notices that this machine, or the time for the work, is about to end; whoever gives them, they stop a stage as SIGTERM does.

A thread asks each watcher every few seconds. Once one has something to say, that is the reason, and the main thread gets the
signal, so that whatever runs (a build of a cache, validation, an export) ends by the handler that is in force there.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

EVERY_SECONDS = 5.0  # of the two minutes that a spot machine is given


class NoticeWatcher(Protocol):
    """Something that may know of an end to come."""

    def look(self) -> str | None:
        """The notice in words, or None while there is none. Asked every few seconds, it answers within two; it never raises."""


@dataclass(frozen=True)
class FileNotice:
    """A file whose appearance is the notice; its first line says why."""

    path: Path

    def look(self) -> str | None:
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"{self.path}: there, but not to be read ({error.strerror})"
        return f"{self.path}: {lines[0][:200] if lines and lines[0].strip() else 'asks to stop'}"


@dataclass(frozen=True)
class TimeNotice:
    """A time of `clock`, in seconds, at which the work is to stop; `described` for people."""

    at: float
    described: str
    clock: Callable[[], float] = time.time

    def look(self) -> str | None:
        return f"it is {self.described}, the time to stop" if self.clock() >= self.at else None


class Notices:
    """What `watchers` have said so far. `tell` is called once, from the watching thread, when there is a reason."""

    def __init__(
        self, watchers: Sequence[NoticeWatcher], tell: Callable[[], object], every_seconds: float = EVERY_SECONDS
    ) -> None:
        self._watchers, self._tell, self._every_seconds = watchers, tell, every_seconds
        self._reason: str | None = None
        self._over, self._telling = threading.Event(), threading.Lock()

    def reason(self) -> str | None:
        """Why to stop; None while there is no need to. Costs nothing: to be asked at each step."""
        return self._reason

    @contextmanager
    def watched(self) -> Iterator["Notices"]:
        """Ask the watchers, in a thread, for the duration of the block; nothing is told after it."""
        if not self._watchers:
            yield self
            return
        thread = threading.Thread(target=self._watch, name="notices", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            with self._telling:
                self._over.set()

    def _watch(self) -> None:
        while not self._over.is_set():
            self._reason = next((said for watcher in self._watchers if (said := watcher.look()) is not None), None)
            if self._reason is not None:
                with self._telling:
                    if not self._over.is_set():
                        self._tell()
                return
            self._over.wait(self._every_seconds)


def ask_main_thread_to_stop() -> None:
    """SIGTERM for the main thread itself: given to the process, another thread might take it and leave the main one waiting."""
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGTERM)
