"""What a pull has to do, decided from two listings and nothing else."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nightowl.cloud.storage import RemoteObject


@dataclass(frozen=True)
class Plan:
    """What is new, what is another object under the same key, and which keys are gone. The rest stays as it is."""

    added: tuple[RemoteObject, ...]
    changed: tuple[RemoteObject, ...]
    removed: tuple[str, ...]

    @property
    def num_bytes(self) -> int:
        """What would have to move, at most."""
        return sum(found.num_bytes for found in (*self.added, *self.changed))


def plan_pull(listing: Iterable[RemoteObject], index: Iterable[RemoteObject]) -> Plan:
    """The way from `index` (what the mirror holds) to `listing`. Both in order of their keys, each key once."""
    added, changed, removed = [], [], []
    for now, before in _side_by_side(iter(listing), iter(index)):
        if now is None and before is not None:
            removed.append(before.key)
        elif now is not None and before is None:
            added.append(now)
        elif now is not None and now != before:
            changed.append(now)
    return Plan(tuple(added), tuple(changed), tuple(removed))


def _side_by_side(
    listing: Iterator[RemoteObject], index: Iterator[RemoteObject]
) -> Iterator[tuple[RemoteObject | None, RemoteObject | None]]:
    now, before = next(listing, None), next(index, None)
    while now is not None or before is not None:
        if before is None or (now is not None and now.key < before.key):
            yield now, None
            now = next(listing, None)
        elif now is None or before.key < now.key:
            yield None, before
            before = next(index, None)
        else:
            yield now, before
            now, before = next(listing, None), next(index, None)
