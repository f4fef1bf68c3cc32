"""The images of a shard that were found damaged: they count as missing, so that a build makes them anew."""

import json
from collections.abc import Collection
from pathlib import Path

from nightowl.data.cache.entries import Key
from nightowl.files import canonical_json, write_atomic

DAMAGED = "DAMAGED"


def damaged_in(folder: Path) -> frozenset[Key] | None:
    """The images of a shard that were found damaged; they count as missing. None when the list of them cannot be read: any
    may be meant."""
    try:
        return frozenset(Key(*row) for row in json.loads((folder / DAMAGED).read_bytes()))
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, TypeError):
        return None


def mark_damaged(folder: Path, damaged: Collection[Key]) -> None:
    """Remember that these images of a shard are damaged."""
    write_atomic(folder / DAMAGED, canonical_json(sorted((damaged_in(folder) or frozenset()) | frozenset(damaged))))
