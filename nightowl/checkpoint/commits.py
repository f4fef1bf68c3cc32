"""What makes a state one that can be gone on from: its data object, and then a commit object that says what the data must be.

A state without its commit object does not exist. Names hold the order in which commits were made: by writer, each of which
has a higher number than those before it, and by the writer's own count.
"""

import re
from typing import Literal

from nightowl.records import Record

COMMITS, DATA, WRITERS, IDENTITY = "commits/", "data/", "writers/", "identity.json"
_NAME = re.compile(rf"{COMMITS}w(\d{{6}})-c(\d{{8}})\.json")

Reason = Literal["time", "epoch", "stop"]


class Moment(Record):
    """Where a training stands. `step`: optimizer steps done; `epoch`: whole epochs done, validated and all.

    `best`: no epoch before was better, and this state ends it. `finished`: nothing is left to train.
    """

    step: int
    epoch: int
    reason: Reason
    best: bool = False
    finished: bool = False
    world_size: int = 1


class Commit(Record):
    """One committed state. `key` is that of its training's Identity; `versions` are of the libraries that wrote it."""

    writer: int
    count: int
    moment: Moment
    key: str
    dataset_sha256: str
    versions: dict[str, str]
    sha256: str
    num_bytes: int

    @property
    def name(self) -> str:
        return name_of(self.writer, self.count)

    @property
    def data(self) -> str:
        return data_of(self.name)


def name_of(writer: int, count: int) -> str:
    """The key of a commit object."""
    return f"{COMMITS}w{writer:06}-c{count:08}.json"


def data_of(name: str) -> str:
    """The key of the data object that belongs to a commit object."""
    return f"{DATA}{name.removeprefix(COMMITS).removesuffix('.json')}.pt"


def order_of(name: str) -> tuple[int, int] | None:
    """Writer and count of a commit object's key; None for a key that is none."""
    match = _NAME.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def newest_first(names: set[str]) -> list[str]:
    """The keys of commit objects among `names`, the newest first."""
    return sorted((name for name in names if order_of(name)), reverse=True)
