import io
import pickle

import pytest
import torch

from nightowl.checkpoint.serialise import from_bytes, to_bytes
from nightowl.errors import CheckpointError


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return exec, ("raise SystemExit('ran')",)


def test_a_state_comes_back_as_it_was() -> None:
    state = {
        "model": {"w": torch.arange(6.0).reshape(2, 3)},
        "rng": (1, (2, 3), None),
        "ema": torch.tensor(1, dtype=torch.bfloat16),
    }
    back = from_bytes(to_bytes(state))
    assert torch.equal(back["model"]["w"], state["model"]["w"]) and back["rng"] == (1, (2, 3), None)  # type: ignore[index]
    assert back["ema"].dtype == torch.bfloat16


def test_equal_states_are_equal_bytes() -> None:
    assert to_bytes({"w": torch.ones(3), "n": 1}) == to_bytes({"w": torch.ones(3), "n": 1})


@pytest.mark.parametrize("content", [b"", b"not a state", pickle.dumps({"a": Evil()}), to_bytes({"a": 1})[:-30]])
def test_what_is_no_state_is_refused_in_one_line(content: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"^[^\n]+$"):
        from_bytes(content)


def test_a_state_that_would_run_code_does_not() -> None:
    buffer = io.BytesIO()
    torch.save({"a": Evil()}, buffer)
    with pytest.raises(CheckpointError, match="not a state that can be loaded safely"):
        from_bytes(buffer.getvalue())


def test_something_else_than_a_state_is_named() -> None:
    buffer = io.BytesIO()
    torch.save([1, 2], buffer)
    with pytest.raises(CheckpointError, match="expected a state, found list"):
        from_bytes(buffer.getvalue())
