"""A rank that hangs holds all others up in the next collective, for ever and without a word. The watchdog names it, has its
stack dumped, and ends the training.

Each rank has one, in a thread. Ages are by the clock of whoever looks, from when it saw a beat change: clocks of several hosts
need not agree. For the rank that hangs to be told from those that wait for it, each beats before it goes into a collective.
"""

import faulthandler
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from nightowl.training.pulse import Board, Heart, Pulse

DUMP_SIGNAL = signal.SIGUSR2
_MOMENT_SECONDS = 1.0  # for a stack to be written before the process ends


@dataclass(frozen=True)
class Seen:
    """A rank's newest pulse, and for how many seconds it has not changed."""

    pulse: Pulse
    seconds: float


def hanging(seen: Sequence[Seen], timeout_seconds: float) -> list[Seen]:
    """The ranks that the others wait for: of those that have not advanced for `timeout_seconds`, the ones that are furthest
    behind. Ranks that wait in a collective have begun it, so they have one beat more than the one that has not come."""
    fewest = min((each.pulse.beats for each in seen), default=0)
    return [each for each in seen if each.pulse.beats == fewest and each.seconds >= timeout_seconds]


def verdict(hung: Sequence[Seen], world_size: int) -> str:
    """The line that ends the training."""
    named = "; ".join(
        f"{each.pulse.described} has not advanced since {each.pulse.where}, {each.seconds:.0f} s" for each in hung
    )
    if len(hung) == world_size and world_size > 1:
        return f"{named}: all ranks wait in the same place; look at the network between them, or raise rank_timeout_seconds"
    return f"{named}: the other ranks wait for it; its stack is above; run it again, or raise rank_timeout_seconds"


def dumper(hung: Pulse, seen: Sequence[Seen], hung_ranks: set[int]) -> int:
    """The rank that has the stack of `hung` dumped: another on its host, which can also when `hung` holds Python's lock; itself
    where there is none."""
    neighbours = [s.pulse.rank for s in seen if s.pulse.host == hung.host and s.pulse.rank not in hung_ranks]
    return min(neighbours, default=hung.rank)


def end_process(message: str) -> None:
    """Say it and end at once: the main thread is in a collective that nothing interrupts."""
    print(message, file=sys.stderr, flush=True)
    os._exit(1)


@dataclass
class Watchdog:
    """Watches all ranks from this one. `end` is called with the verdict, from a thread."""

    heart: Heart
    board: Board
    world_size: int
    timeout_seconds: float
    end: Callable[[str], object] = end_process
    clock: Callable[[], float] = time.monotonic
    _changed: dict[int, tuple[int, float]] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def watching(self) -> Iterator[Heart]:
        """Watch for the duration of the block; DUMP_SIGNAL then writes this process's stacks to standard error."""
        faulthandler.register(DUMP_SIGNAL, all_threads=True)
        thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        thread.start()
        try:
            yield self.heart
        finally:
            self._over.set()
            thread.join(_MOMENT_SECONDS)
            faulthandler.unregister(DUMP_SIGNAL)

    def look(self) -> list[Seen]:
        """Show this rank's pulse, and see those of all. Raises ConnectionError."""
        self.board.show(self.heart.pulse())
        now, seen = self.clock(), []
        for pulse in self.board.all():
            beats, since = self._changed.get(pulse.rank, (-1, now))
            if beats != pulse.beats:
                since = now
                self._changed[pulse.rank] = pulse.beats, since
            seen.append(Seen(pulse, now - since))
        return seen

    def _watch(self) -> None:
        while not self._over.wait(min(1.0, self.timeout_seconds / 4)):
            try:
                seen = self.look()
            except ConnectionError:
                return  # rank 0 has ended, and the group with it: that is for the collectives to notice
            hung = hanging(seen, self.timeout_seconds)
            if hung and not self._over.is_set():
                self._dump(hung, seen)
                time.sleep(_MOMENT_SECONDS)
                self.end(verdict(hung, self.world_size))
                return

    def _dump(self, hung: Sequence[Seen], seen: Sequence[Seen]) -> None:
        ranks = {each.pulse.rank for each in hung}
        for each in hung:
            if dumper(each.pulse, seen, ranks) == self.heart.rank and each.pulse.host == socket.gethostname():
                print(f"{each.pulse.described} hangs; its stacks:", file=sys.stderr, flush=True)
                os.kill(each.pulse.pid, DUMP_SIGNAL)
