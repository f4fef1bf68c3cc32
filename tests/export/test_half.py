"""FP16: what a CPU proves of it, and what it does not."""

import numpy as np
import onnx
import pytest

from nightowl.export.graph import GraphRunner
from nightowl.export.half import MAX_FP16, beyond_fp16, extremes, half, rounding
from tests.export.graphs import run, scaled_graph, tiny_graph
from tests.tiny import SIZE

ONES = np.ones((1, 3, 8, 8), np.float32)


def rounded(model: onnx.ModelProto, batch: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> np.ndarray:  # type: ignore[type-arg]
    return GraphRunner(rounding(model))(batch)


def test_an_overflow_that_the_cpu_provider_hides_is_found_by_both_judges() -> None:
    model = scaled_graph(up=1.2e5 / 2, down=0.5)  # 60,000 fits; 120,000 does not
    large = ONES * 2
    assert run(half(model), large).ravel()[0] == 60_000, "onnxruntime computes it in FP32, and all looks well"
    assert np.isinf(rounded(model, large)).all()
    assert [extreme.tensor for extreme in beyond_fp16(extremes(model, large))] == ["large"]


@pytest.mark.parametrize(
    ("value", "fits", "why"),
    [(MAX_FP16, True, "the end of the format"), (65_505.0, False, "one more"), (float("inf"), False, "infinite")],
)
def test_the_range_of_the_format_is_its_last_number(value: float, fits: bool, why: str) -> None:
    found = extremes(scaled_graph(value, 0.0 if np.isfinite(value) else 1.0), ONES)
    assert (beyond_fp16(found) == []) is fits, why


def test_a_tensor_that_was_not_a_number_once_stays_so() -> None:
    inputs = np.concatenate([ONES, ONES * np.nan, ONES])
    assert [np.isnan(extreme.value) for extreme in extremes(scaled_graph(2, 2), inputs)] == [True, True]
    assert len(beyond_fp16(extremes(scaled_graph(2, 2), inputs))) == 2


def test_every_result_and_weight_is_rounded() -> None:
    third = np.float32(1 / 3)
    once = np.float32(np.float16(np.float16(third) * np.float16(third)))
    twice = np.float32(np.float16(once * np.float16(third)))
    assert rounded(scaled_graph(third, third), ONES * third).ravel()[0] == twice
    assert run(scaled_graph(third, third), ONES * third).ravel()[0] != twice


def test_an_honest_detector_is_close_in_fp16_by_file_and_by_rounding() -> None:
    images = np.random.default_rng(0).random((2, 3, SIZE, SIZE), np.float32)
    expected = run(tiny_graph(), images)
    for said in (run(half(tiny_graph()), images), rounded(tiny_graph(), images)):
        gap = np.abs(said - expected)  # its weights are random and sharpened: single scores differ by more
        assert 0 < gap[:, 4:].mean() < 0.01
        assert gap[:, :4].mean() < 0.5, "pixels"
    assert beyond_fp16(extremes(tiny_graph(), images)) == []


def test_half_is_half_the_bytes_keeps_its_card_and_its_float_ends() -> None:
    full, small = tiny_graph(), half(tiny_graph())
    assert small.ByteSize() < 0.6 * full.ByteSize()
    assert {p.key: p.value for p in small.metadata_props} == {p.key: p.value for p in full.metadata_props}
    ends = (*small.graph.input, *small.graph.output)
    assert {end.type.tensor_type.elem_type for end in ends} == {onnx.TensorProto.FLOAT}
    assert half(tiny_graph()).SerializeToString(deterministic=True) == small.SerializeToString(deterministic=True)
