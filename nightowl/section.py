"""The base of every group of params: frozen, strict, and with one digest for equal values."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from nightowl.files import canonical_json, sha256_bytes

Fraction = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """A frozen group of params in which an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def digest(self) -> str:
        """SHA-256 over the canonical JSON of every value, defaults included."""
        return sha256_bytes(canonical_json(self.model_dump(mode="json")).encode())
