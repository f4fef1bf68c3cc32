"""In which numbers a training computes, by what params ask for and what the machine has."""

from pathlib import Path

import pytest

from nightowl.params import TrainParams
from nightowl.training.compute import Compute, choose_compute, has_fast_bf16


@pytest.mark.parametrize(
    ("train", "device", "fast_bf16", "expected", "reason"),
    [
        ({}, "cpu", False, ("fp32", "contiguous", False), "a plain CPU, as ultralytics trains it"),
        ({}, "cpu", True, ("bf16", "channels_last", False), "a CPU with bf16 is fastest in both"),
        ({}, "cuda:1", True, ("bf16", "channels_last", True), "a GPU does the colours too"),
        ({"precision": "fp32"}, "cuda:0", True, ("fp32", "channels_last", True), "asked for: a GPU likes channels last anyway"),
        ({"precision": "fp16", "memory_format": "contiguous"}, "cuda:0", True, ("fp16", "contiguous", True), "both asked for"),
    ],
)
def test_auto_is_what_the_device_is_fast_in(
    train: dict[str, str], device: str, fast_bf16: bool, expected: tuple[str, str, bool], reason: str
) -> None:
    chosen = choose_compute(TrainParams.model_validate(train), device, fast_bf16)
    assert (chosen.precision, chosen.memory_format, chosen.colours_on_device) == expected, reason


@pytest.mark.parametrize(
    ("flags", "fast"),
    [("fpu avx2 avx512f", False), ("fpu avx512_bf16", True), ("amx_tile amx_bf16", True), ("bf16like", False)],
)
def test_a_cpu_is_fast_in_bf16_if_it_says_so(tmp_path: Path, flags: str, fast: bool) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nflags\t\t: {flags}\n")
    assert has_fast_bf16("cpu", tmp_path / "cpuinfo") is fast


def test_a_system_that_does_not_say_is_not_fast(tmp_path: Path) -> None:
    assert has_fast_bf16("cpu", tmp_path / "none") is False


def test_what_was_chosen_comes_back_from_a_record() -> None:
    chosen = Compute(precision="bf16", memory_format="channels_last", colours_on_device=True)
    assert Compute.model_validate(chosen.model_dump()) == chosen
