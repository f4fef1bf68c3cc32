"""Parity: a difference is seen, measured, and is a result."""

import numpy as np
import pytest
from numpy.typing import NDArray

from nightowl.evaluation.metrics import Metrics
from nightowl.export.parity import Gap, compare_outputs, judge, tensor_checks
from nightowl.params import ExportParams

LIMITS = ExportParams(max_map50_95_gap=0.001, max_score_gap=0.001, max_box_gap_px=0.1)


def metrics(map50_95: float | None) -> Metrics:
    return Metrics(
        model="m",
        weights_sha256="0",
        dataset_version="1",
        split="test",
        num_images=1,
        num_truth=1,
        map50=None,
        map75=None,
        map50_95=map50_95,
        classes=(),
        seconds_per_image=0.1,
    )


@pytest.mark.parametrize(
    ("gap", "exported", "passed", "why"),
    [
        (Gap(0.0005, 0.05), 0.5005, [True, True, True], "all within"),
        (Gap(0.002, 0.05), 0.5, [False, True, True], "a score is off"),
        (Gap(0.0, 0.2), 0.5, [True, False, True], "a box is off"),
        (Gap(0.0, 0.0), 0.502, [True, True, False], "better is off too: it is not the same model"),
        (Gap(float("nan"), float("inf")), 0.5, [False, False, True], "NaN never passes"),
        (Gap(0.0, None), 0.5, [True, False, True], "what could not be compared does not pass"),
        (Gap(0.0, 0.0), None, [True, True, False], "what could not be measured does not pass"),
    ],
)
def test_every_figure_is_held_against_its_limit(gap: Gap, exported: float | None, passed: list[bool], why: str) -> None:
    checks = judge(gap, metrics(0.5), metrics(exported), LIMITS)
    assert [check.passed for check in checks] == passed, why


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
    assert tensor_checks(runner, runner, images, "raw", 0.001) == Gap(0.0, 0.0)
    assert sizes == [1] * 6 + [4] * 2
