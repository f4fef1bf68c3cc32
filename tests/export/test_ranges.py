"""The range of a tensor: what a share of its values keeps within, whatever order and size they come in."""

import numpy as np
import pytest
from numpy.typing import NDArray

from nightowl.errors import StageFailed
from nightowl.export.ranges import _MOST as MOST
from nightowl.export.ranges import BINS, Magnitudes, ranges_of
from tests.export.graphs import scaled_graph


def seen(*parts: NDArray[np.float32]) -> Magnitudes:
    magnitudes = Magnitudes()
    for part in parts:
        magnitudes.add(part)
    return magnitudes


@pytest.mark.parametrize("scale", [1e-6, 1.0, 3e5], ids="{}".format)
@pytest.mark.parametrize("percent", [99.0, 99.9, 99.99])
def test_it_is_the_percentile_of_magnitudes_to_a_step(percent: float, scale: float) -> None:
    values = (np.random.default_rng(0).standard_normal(30_000) * scale).astype(np.float32)
    exact = np.percentile(np.abs(values), percent, method="inverted_cdf")
    step = 2 * np.abs(values).max() / BINS  # the end is a power of two, at most twice the largest
    low, high = seen(values).range_of(percent)
    assert low == -high and 0 <= high - exact <= step * 1.001


def test_of_a_large_tensor_a_part_is_counted_from_another_place_each_time_and_no_extreme_is_missed() -> None:
    size = 8 * MOST
    values = np.random.default_rng(5).standard_normal(size).astype(np.float32)
    values[[1, 2]] = -50, 60
    magnitudes = seen(*[values] * 9)
    assert magnitudes.counts.sum() == size, "a ninth of it, nine times, is all of it"
    assert magnitudes.range_of(100) == (-50, 60)
    assert magnitudes.range_of(99.9)[1] == pytest.approx(np.percentile(np.abs(values), 99.9), rel=0.01)
    assert seen(values).range_of(99.9)[1] == pytest.approx(np.percentile(np.abs(values), 99.9), rel=0.1)


def test_all_of_it_is_from_the_least_to_the_greatest_value() -> None:
    values = np.random.default_rng(1).uniform(-0.278, 7.3, 5000).astype(np.float32)
    assert seen(values).range_of(100) == (float(values.min()), float(values.max()))


def test_one_side_that_is_smaller_is_not_widened() -> None:
    values = np.append(np.random.default_rng(2).uniform(-0.25, 8, 30_000), 900.0).astype(np.float32)
    low, high = seen(values).range_of(99.99)
    assert low == float(values.min()) and 7.9 < high < 8.3, "the one value far outside is clipped"


@pytest.mark.parametrize("reverse", [False, True])
def test_a_larger_value_that_comes_later_changes_nothing_but_the_steps(reverse: bool) -> None:
    parts = [np.random.default_rng(n).standard_normal(1000).astype(np.float32) * np.float32(10.0 ** (n - 3)) for n in range(7)]
    together, in_turn = seen(np.concatenate(parts)), seen(*(parts[::-1] if reverse else parts))
    assert in_turn.end == together.end and np.array_equal(in_turn.counts, together.counts)


def test_zeros_and_nothing_have_a_range_too() -> None:
    assert seen(np.zeros(9, np.float32)).range_of(99.99) == (0, 0)
    assert not seen(np.zeros(0, np.float32)).counts.any()


def test_the_ranges_of_a_graph_are_those_of_its_tensors_and_its_input() -> None:
    images = np.random.default_rng(3).random((3, 3, 8, 8), np.float32)
    found = ranges_of(scaled_graph(64.0, 0.5), iter(images), ["large", "output0"], 100)
    assert found == {
        name: (pytest.approx(factor * images.min()), pytest.approx(factor * images.max()))
        for name, factor in (("images", 1), ("large", 64), ("output0", 32))
    }


def test_no_image_and_a_tensor_that_is_no_number_are_said() -> None:
    with pytest.raises(StageFailed, match="expected images to calibrate INT8 on, found none in train"):
        ranges_of(scaled_graph(2.0, 1.0), iter(()), ["large"], 99.99)
    images = np.full((2, 3, 8, 8), 3e38, np.float32)
    with pytest.raises(StageFailed, match="large holds NaN or infinity on calibration image 1"):
        ranges_of(scaled_graph(64.0, 1.0), iter(images), ["large"], 99.99)
