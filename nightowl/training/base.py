"""Base weights: where a training starts from, pinned by digest."""

from pathlib import Path
from typing import Literal

from nightowl.errors import WeightsError, remedy
from nightowl.records import Record


class BaseWeights(Record):
    """Where a training starts from. `sha256` is None only for a YAML (random weights)."""

    kind: Literal["yaml", "file", "champion"]
    name: str
    sha256: str | None

    @property
    def identity(self) -> str:
        """What decides the training of it: the content, or the architecture."""
        return self.sha256 or self.name


def read_base(path: Path) -> BaseWeights:
    """The pinned base weights. Raises WeightsError when they are not pinned, or the record is broken."""
    try:
        return BaseWeights.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise WeightsError(f"{path}: no pinned base weights; {remedy(path)}") from None
    except ValueError as error:
        raise WeightsError(
            f"{path}: not a record of base weights ({' '.join(str(error).split())}); pin the inputs again"
        ) from error
