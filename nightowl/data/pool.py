"""Worker processes that fill batches ahead of the training, in the order of the steps.

Promises: the batches do not depend on the number of workers; never more than `prefetch_steps` are made ahead; a slot is used
again only when nobody holds its batch any more; a worker that ends is an error at once, not a hang.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection

from nightowl.data.batch import Batch
from nightowl.data.maker import Maker, Share, TrainingSet, batch_of
from nightowl.data.slots import Layout, Ring, anonymous_file, mapped
from nightowl.data.worker import Failure, Setup, Task
from nightowl.errors import NightowlError, StageFailed

_END_SECONDS = 5.0
_CHUNKS_A_WORKER = 2  # of each step, so that a slow sample does not hold up the others


@dataclass(slots=True)
class _Pending:
    slot: int
    num_open: int


class Pool:
    """`num_workers` processes that make samples of one set, and a ring of `layout` that they write to."""

    def __init__(self, training_set: TrainingSet, layout: Layout, num_workers: int, prefetch_steps: int) -> None:
        self._set = training_set
        self._prefetch = prefetch_steps
        self._layout = layout
        num_bytes = self._layout.num_bytes()
        descriptor = anonymous_file(num_bytes)
        try:
            self._ring = Ring(self._layout, mapped(descriptor, num_bytes))
            self._workers = [_Worker(number, descriptor) for number in range(num_workers)]
        finally:
            os.close(descriptor)
        self._end = weakref.finalize(self, _end, self._workers)
        for worker in self._workers:
            worker.send(Setup(training_set, layout))
        self._pending: dict[int, _Pending] = {}
        self._abandoned = set[int]()
        self._next_ticket = 0

    def run(self, shares: Iterable[Share]) -> Iterator[Batch]:
        """The batches of `shares`, in order. Raises StageFailed, or what a worker raised."""
        if not self._end.alive:
            raise StageFailed("the loader is closed; make a new one to read more batches")
        ahead, left = deque[tuple[int, Share]](), iter(shares)
        exhausted = False
        try:
            while True:
                while not exhausted and self._ring and len(ahead) < self._prefetch:
                    share = next(left, None)
                    exhausted = share is None
                    if share is not None:
                        ahead.append((self._begin(share), share))
                if ahead:
                    self._wait_for(ahead[0][0])
                    ticket, share = ahead.popleft()
                    yield self._take(ticket, share)
                elif exhausted:
                    return
                elif self._pending:
                    self._receive()  # of a run that was given up: frees a slot
                elif not self._ring:  # the reader keeps every batch: this one gets memory of its own
                    share = next(left, None)
                    exhausted = share is None
                    if share is not None:
                        yield self._apart(share)
        except NightowlError:
            self.close()
            raise
        finally:
            self._give_up(ticket for ticket, _ in ahead)

    def close(self) -> None:
        """End the workers. A second call does nothing."""
        self._end()

    def _begin(self, share: Share) -> int:
        """Hand the samples out to the workers. Returns the ticket under which they will be ready."""
        ticket, slot = self._next_ticket, self._ring.take()
        self._next_ticket += 1
        length = -(-len(share.samples) // (_CHUNKS_A_WORKER * len(self._workers))) or 1
        starts = range(0, len(share.samples), length)
        self._pending[ticket] = _Pending(slot, len(starts))
        for first in starts:
            worker = min(self._workers, key=lambda worker: worker.num_samples_open)
            worker.begin(Task(ticket, share._replace(samples=share.samples[first : first + length]), slot, first))
        return ticket

    def _wait_for(self, ticket: int) -> None:
        while self._pending[ticket].num_open:
            self._receive()

    def _receive(self) -> None:
        """Take what workers have to say, waiting until one of them has."""
        if not self._end.alive:
            raise StageFailed("the loader was closed while its batches were being read; make a new one")
        by_connection = {worker.connection: worker for worker in self._workers}
        for ready in connection.wait(list(by_connection)):
            worker = by_connection[ready]  # type: ignore[index]
            ticket = worker.finished()
            self._pending[ticket].num_open -= 1
            self._free_if_abandoned(ticket)

    def _take(self, ticket: int, share: Share) -> Batch:
        slot = self._ring.lend(self._pending.pop(ticket).slot)
        return batch_of(slot, share.samples, self._set.colour_later)

    def _apart(self, share: Share) -> Batch:
        slot = self._layout.private()
        Maker(self._set).make(share, slot)
        return batch_of(slot, share.samples, self._set.colour_later)

    def _give_up(self, tickets: Iterable[int]) -> None:
        for ticket in tickets:
            self._abandoned.add(ticket)
            self._free_if_abandoned(ticket)

    def _free_if_abandoned(self, ticket: int) -> None:
        if ticket in self._abandoned and not self._pending[ticket].num_open:
            self._abandoned.remove(ticket)
            self._ring.give_back(self._pending.pop(ticket).slot)


class _Worker:
    """A worker process as its owner sees it."""

    def __init__(self, number: int, memory: int) -> None:
        self._number = number
        self._open = deque[int]()  # samples of each task it has not finished
        ours, theirs = socket.socketpair()
        arguments = [sys.executable, "-m", "nightowl.data.worker", str(theirs.fileno()), str(memory)]
        path = os.pathsep.join(each or os.getcwd() for each in sys.path)
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        with theirs:
            self._process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(), memory), env=environment, process_group=0
            )
        self.connection = Connection(ours.detach())

    @property
    def num_samples_open(self) -> int:
        return sum(self._open)

    def begin(self, task: Task) -> None:
        self._open.append(len(task.share.samples))
        self.send(task)

    def send(self, message: Setup | Task) -> None:
        try:
            self.connection.send(message)
        except OSError as error:
            raise self._gone() from error

    def finished(self) -> int:
        """The ticket of its next finished task; waits for it. Raises what the worker raised, or that it has ended."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError) as error:
            raise self._gone() from error
        if isinstance(message, Failure):
            raise message.error
        self._open.popleft()
        ticket: int = message
        return ticket

    def end(self) -> None:
        self.connection.close()

    def wait(self) -> None:
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _gone(self) -> StageFailed:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        code = self._process.returncode
        how = (
            "without a word" if code is None else f"with {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        )
        advice = "; was the machine out of memory? lower the number of loader workers" if code == -signal.SIGKILL else ""
        return StageFailed(f"loader worker {self._number} (process {self._process.pid}) ended {how}{advice}")


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.end()
    for worker in workers:
        worker.wait()
