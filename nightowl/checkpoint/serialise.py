"""A state as bytes, and back. What comes back is an input like any other: tensors, numbers, texts and their containers load,
and nothing that could run. A night, which only looks where checkpoints lie, does not load torch for it."""

import io
import pickle
from typing import IO, Any

from nightowl.errors import CheckpointError

_ZIP = b"PK\x03\x04"
State = dict[str, Any]
"""What a training needs to go on: nested dicts, lists and tuples of tensors on the CPU and plain values."""


def write_state(state: State, file: IO[bytes]) -> None:
    """Write `state` from front to back: nothing is kept of it in memory besides."""
    import torch

    torch.save(state, file)


def to_bytes(state: State) -> bytes:
    buffer = io.BytesIO()
    write_state(state, buffer)
    return buffer.getvalue()


def from_bytes(content: bytes) -> State:
    """The state in `content`, on the CPU. Raises CheckpointError when it is no state, or more than one."""
    import torch

    if not content.startswith(_ZIP):  # older forms would be tried, and warned about
        raise CheckpointError("not a state: expected an archive as torch.save writes it")
    try:
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, ValueError, EOFError, KeyError) as error:
        raise CheckpointError(f"not a state that can be loaded safely: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"expected a state, found {type(state).__name__}")
    return state
