"""Base weights: where a training starts from, pinned by digest."""

from typing import Literal

from nightowl.records import Record


class BaseWeights(Record):
    """Where a training starts from. `sha256` is None only for a YAML (random weights)."""

    kind: Literal["yaml", "file", "champion"]
    name: str
    sha256: str | None
