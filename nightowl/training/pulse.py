"""The pulse of each rank, where every rank can see it: how often it has advanced, and where it is.

A rank beats in its own memory, which costs a step nothing; its watchdog's thread passes the beat on. The board is a store on
rank 0's host, over a connection of its own, so that nothing waits behind a collective.
"""

import os
import socket
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]

from nightowl.records import Record

_PATIENCE = timedelta(seconds=10)


class Pulse(Record):
    """`beats` counts what the rank has begun and ended; `where` is the newest of these, in words."""

    rank: int
    host: str
    pid: int
    beats: int
    where: str

    @property
    def described(self) -> str:
        return f"rank {self.rank} ({self.host}, process {self.pid})"


@dataclass
class Heart:
    """A rank's own beat; called by the thread that works."""

    rank: int
    beats: int = 0
    where: str = "the start"

    def beat(self, where: str | None = None) -> None:
        """It has advanced; `where` to, if that is somewhere else. Costs less than a microsecond."""
        self.where = where or self.where
        self.beats += 1

    def pulse(self) -> Pulse:
        return Pulse(rank=self.rank, host=socket.gethostname(), pid=os.getpid(), beats=self.beats, where=self.where)


class Board(Protocol):
    """Where pulses are seen by all. Both raise ConnectionError when it cannot be reached any more."""

    def show(self, pulse: Pulse) -> None: ...

    def all(self) -> list[Pulse]:
        """The newest pulse of every rank that has shown one."""


class StoreBoard:
    """A board in a torch store."""

    def __init__(self, store: Store, world_size: int) -> None:
        self._store, self._keys = store, [f"pulse {rank}" for rank in range(world_size)]

    def show(self, pulse: Pulse) -> None:
        try:
            self._store.set(self._keys[pulse.rank], pulse.model_dump_json())
        except RuntimeError as error:
            raise ConnectionError(str(error)) from error

    def all(self) -> list[Pulse]:
        try:
            shown = self._store.multi_get(self._keys)
        except RuntimeError as error:
            raise ConnectionError(str(error)) from error
        return [Pulse.model_validate_json(text) for text in shown if text]


class Sharing(Protocol):
    rank: int
    world_size: int

    def share(self, value: object) -> object:
        """What rank 0 gave, on all ranks."""


def board_of(group: Sharing) -> StoreBoard:
    """A board for the ranks of `group`; all of them call this. It lies with rank 0, at torchrun's MASTER_ADDR."""
    if group.rank == 0:
        store = TCPStore(_address(), 0, is_master=True, wait_for_workers=False, timeout=_PATIENCE)
        for rank in range(group.world_size):
            store.set(f"pulse {rank}", "")
        group.share(store.port)
    else:
        port = group.share(None)
        assert isinstance(port, int)
        store = TCPStore(_address(), port, is_master=False, wait_for_workers=False, timeout=_PATIENCE)
    return StoreBoard(store, group.world_size)


def _address() -> str:
    return os.environ.get("MASTER_ADDR", "127.0.0.1")
