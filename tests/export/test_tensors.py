"""Tensor level: outputs of two networks, compared number by number."""

import numpy as np
import pytest
from numpy.typing import NDArray

from nightowl.export.tensors import Gap, compare_outputs, tensor_gap


def test_a_raw_head_is_compared_by_scores_and_edges() -> None:
    ours = np.random.default_rng(0).random((2, 6, 10), np.float32)
    theirs = ours.copy()
    theirs[1, 5, 3] += 0.25
    theirs[0, 2, 4] += 1.0  # a pixel wider: each edge moves by half
    gap = compare_outputs(ours, theirs, "raw", 0.001)
    assert gap.score == pytest.approx(0.25, abs=1e-6)
    assert gap.box_px == pytest.approx(0.5, abs=1e-6)


def test_rows_of_an_end_to_end_head_may_swap() -> None:
    ours = np.array([[[0, 0, 4, 4, 0.9, 1], [8, 8, 9, 9, 0.9, 1], [5, 5, 6, 6, 0.0, 0]]], np.float32)
    theirs = ours[:, [1, 0, 2]]
    assert compare_outputs(ours, theirs, "end2end", 0.001) == Gap(0.0, 0.0)


def test_a_row_whose_class_changed_is_a_gap() -> None:
    ours = np.array([[[0, 0, 4, 4, 0.9, 1], [0, 0, 1, 1, 0, 0]]], np.float32)
    theirs = np.array([[[0, 0, 4, 4, 0.9, 0], [0, 0, 1, 1, 0, 0]]], np.float32)
    assert compare_outputs(ours, theirs, "end2end", 0.001).box_px == np.inf


def test_every_image_is_compared_alone_and_in_a_batch() -> None:
    sizes: list[int] = []

    def runner(batch: NDArray[np.float32]) -> NDArray[np.float32]:
        sizes.append(len(batch))
        return np.ones((len(batch), 5, 2), np.float32)

    images = np.zeros((3, 3, 8, 8), np.float32)
    assert tensor_gap(runner, runner, images, "raw", 0.001) == Gap(0.0, 0.0)
    assert sizes == [1] * 6 + [4] * 2


def test_outputs_of_another_shape_differ_infinitely() -> None:
    assert compare_outputs(np.zeros((1, 6, 9), np.float32), np.zeros((1, 6, 8), np.float32), "raw", 0.1).score == np.inf
