"""The checkpoints of one training, with one writer: a folder here, and behind it a mirror elsewhere when there is one.

Both hold the same objects under the same names, so that what is missing or damaged in one is taken from the other.
"""

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nightowl.checkpoint.commits import COMMITS, IDENTITY, Commit, Moment, data_of, name_of, newest_first
from nightowl.checkpoint.copies import claim_writer, commit_names, identity_in, prune, publish, read_commit, read_data
from nightowl.checkpoint.identity import Identity, require_same
from nightowl.checkpoint.plan import Keep
from nightowl.checkpoint.serialise import State, from_bytes, write_state
from nightowl.cloud.bucket import Bucket, FolderBucket
from nightowl.errors import CheckpointError

Say = Callable[[str], None]


@dataclass(frozen=True)
class Found:
    """A committed state, verified and loaded."""

    commit: Commit
    state: State


class Run:
    """One training's checkpoints, for this process to write. `say` hears one line about each that is passed over.

    Raises:
        CheckpointError: what lies there is of another training. RemoteError, OSError: a place cannot be reached or written.
    """

    def __init__(self, local: FolderBucket, mirror: Bucket | None, identity: Identity, keep: Keep, say: Say) -> None:
        self.local, self.mirror, self.keep, self._say = local, mirror, keep, say
        self._identity, self._key, self._count = identity, identity.key(), 0
        local.sweep()
        self._places: list[Bucket] = [local] if mirror is None else [local, mirror]
        for place in self._places:
            there = identity_in(place)
            if there is None:
                place.put(IDENTITY, identity.model_dump_json(indent=2).encode())
            else:
                require_same(there, identity, place.url)
        self.writer = claim_writer(self._places, f"process {os.getpid()} on {socket.gethostname()}")

    @property
    def scratch(self) -> Path:
        """A folder beside the checkpoints for whatever this process needs while it trains; nothing else looks into it."""
        return self.local.root / ".scratch"

    def newest(self) -> Found | None:
        """The newest sound state, wherever it lies; None when there is none."""
        return next(self._sound(lambda commit: True), None)

    def best(self) -> Found | None:
        """The newest sound state that ends a best epoch; None when there is none."""
        return next(self._sound(lambda commit: commit.moment.best), None)

    def is_finished(self) -> bool:
        """Whether the newest sound state leaves nothing to train."""
        newest = self.newest()
        return newest is not None and newest.commit.moment.finished

    def commit(self, moment: Moment, state: State) -> Commit:
        """Commit a state in the folder, and drop those that need not stay.

        Raises:
            Fenced: another process is the writer by now. OSError: not written; those committed before stand.
        """
        self._count += 1
        data = data_of(name_of(self.writer, self._count))
        num_bytes, sha256 = self.local.put_stream(data, lambda file: write_state(state, file))
        commit = Commit(
            writer=self.writer,
            count=self._count,
            moment=moment,
            key=self._key,
            dataset_sha256=self._identity.dataset_sha256,
            versions=self._identity.libraries,
            sha256=sha256,
            num_bytes=num_bytes,
        )
        publish(self.local, commit, self.writer)
        prune(self.local, self.keep, commit)
        return commit

    def _sound(self, wanted: Callable[[Commit], bool]) -> Iterator[Found]:
        """The states that are `wanted`, sound and ours, newest first."""
        here = {place.url: set(commit_names(place)) for place in self._places}
        for name in newest_first(set().union(*here.values())):
            for place in self._places:
                if name not in here[place.url]:
                    continue
                try:
                    commit = read_commit(place, name)
                    if not wanted(commit):
                        break
                    found = Found(commit, from_bytes(read_data(place, commit)))
                except CheckpointError as error:
                    self._say(f"checkpoint {name.removeprefix(COMMITS)} in {place.url} is passed over: {error}")
                    continue
                if commit.key != self._key:
                    raise CheckpointError(
                        f"{place.url}{name}: a state of training {commit.key[:12]}…, expected {self._key[:12]}…; remove it"
                    )
                yield found
                break
