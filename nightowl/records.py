"""The base of every record that is written down or passed between modules."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Frozen; an unknown key, an infinity or a NaN is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
