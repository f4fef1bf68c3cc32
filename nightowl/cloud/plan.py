"""What a pull has to do, decided from two listings and nothing else: row by row, so that a million objects take no memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from nightowl.cloud.storage import RemoteObject


class Row(NamedTuple):
    """What one key is now and what it was before; None where it is not in that listing."""

    now: RemoteObject | None
    before: RemoteObject | None


@dataclass(frozen=True)
class Plan:
    """How many keys are new, are another object now, and are gone; `num_bytes` is what would have to move, at most."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    num_bytes: int = 0


def plan_pull(listing: Iterable[RemoteObject], index: Iterable[RemoteObject]) -> Plan:
    """The way from `index` (what the mirror holds) to `listing`. Both in order of their keys, each key once."""
    added = changed = removed = num_bytes = 0
    for now, before in side_by_side(listing, index):
        added += before is None
        removed += now is None
        changed += now is not None and before is not None and now != before
        num_bytes += now.num_bytes if now and now != before else 0
    return Plan(added, changed, removed, num_bytes)


def side_by_side(listing: Iterable[RemoteObject], index: Iterable[RemoteObject]) -> Iterator[Row]:
    """Every key of either, in order. Both in order of their keys, each key once."""
    rows, others = iter(listing), iter(index)
    now, before = next(rows, None), next(others, None)
    while now is not None or before is not None:
        if before is None or (now is not None and now.key < before.key):
            yield Row(now, None)
            now = next(rows, None)
        elif now is None or before.key < now.key:
            yield Row(None, before)
            before = next(others, None)
        else:
            yield Row(now, before)
            now, before = next(rows, None), next(others, None)
