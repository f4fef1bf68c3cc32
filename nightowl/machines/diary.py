"""What a node tells the board besides its heartbeat: its log, in pieces, and the spans of time that the account is made of.

Both are gathered in memory and put by the heart's thread; what cannot be put is tried again, and no training waits for it.
"""

import threading
from collections.abc import Callable
from datetime import datetime

from nightowl.errors import RemoteError
from nightowl.machines.board import Board
from nightowl.machines.records import Event, EventKind

_MAX_PIECE_BYTES = 256 << 10


class Diary:
    """Log lines and events of `instance`. Numbers go on from what a former process of the same instance put."""

    def __init__(self, board: Board, instance: str, now: Callable[[], datetime]) -> None:
        self._board, self._instance, self._now = board, instance, now
        self._lock, self._putting = threading.Lock(), threading.Lock()
        self._lines: list[str] = []
        self._events: list[Event] = []
        self._pieces = len(board.bucket.list(f"logs/{instance}/"))
        self._num_events = len(board.bucket.list(f"events/{instance}/"))

    def say(self, line: str) -> None:
        """One line, to our own output and to the board."""
        print(line, flush=True)
        with self._lock:
            self._lines.append(line)

    def note(self, *events: Event) -> None:
        with self._lock:
            self._events += events

    def span(
        self, kind: EventKind, start: datetime, stage: str | None = None, generation: int | None = None, said: str = ""
    ) -> None:
        """An event from `start` until now."""
        end = max(start, self._now())
        self.note(
            Event(instance=self._instance, kind=kind, start=start, end=end, stage=stage, generation=generation, said=said)
        )

    def flush(self) -> None:
        """Put what has gathered. Raises RemoteError, OSError; what was not put stays."""
        with self._putting:
            while piece := self._piece():
                self._board.put_log(self._instance, self._pieces, "\n".join(piece) + "\n")
                self._pieces += 1
                with self._lock:
                    del self._lines[: len(piece)]
            while self._events:
                self._board.put_event(self._num_events, self._events[0])
                self._num_events += 1
                with self._lock:
                    del self._events[0]

    def try_flush(self) -> None:
        try:
            self.flush()
        except (RemoteError, OSError) as error:
            print(f"the log could not be put on the board: {error}", flush=True)

    def _piece(self) -> list[str]:
        with self._lock:
            piece: list[str] = []
            num_bytes = 0
            for line in self._lines:
                num_bytes += len(line) + 1
                if piece and num_bytes > _MAX_PIECE_BYTES:
                    break
                piece.append(line)
            return piece
