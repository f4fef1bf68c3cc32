"""The outputs of two networks for the same input, compared number by number.

Shapes: B images, C classes, A anchors, N rows of an end-to-end head.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.postprocess import Head
from nightowl.evaluation.runners import Runner

BATCHES = (1, 4)


class Gap(NamedTuple):
    """Largest differences between two outputs: of any score, and of any box edge in input pixels (None: no box to compare)."""

    score: float
    box_px: float | None


def compare_outputs(ours: NDArray[np.float32], theirs: NDArray[np.float32], head: Head, confidence: float) -> Gap:
    """The gap between two outputs of one head for the same batch; see `Head`. Outputs of different shapes differ infinitely.

    An end-to-end head sorts by score and cuts, and near-equal scores may swap: scores are compared in order, boxes with the
    closest one of the same class, where the score reaches `confidence` and lies clear of the cut.
    """
    if ours.shape != theirs.shape:
        return Gap(float("inf"), float("inf"))
    if head == "raw":
        edges = np.abs(_edges(ours[:, :4]) - _edges(theirs[:, :4]))
        return Gap(float(np.abs(ours[:, 4:] - theirs[:, 4:]).max()), float(edges.max()))
    score = np.abs(np.sort(ours[..., 4], axis=1) - np.sort(theirs[..., 4], axis=1)).max()
    clear = [rows[(rows[:, 4] >= confidence) & (rows[:, 4] > rows[:, 4].min() + score)] for rows in ours]
    gaps = [_closest_gap(rows, others) for rows, others in zip(clear, theirs, strict=True)]
    known = [gap for gap in gaps if gap is not None]
    return Gap(float(score), max(known) if known else None)


def largest(gaps: Iterable[Gap]) -> Gap:
    """The largest of several gaps, each part on its own; NaN stays NaN."""
    parts = list(gaps)
    boxes = [gap.box_px for gap in parts if gap.box_px is not None]
    return Gap(float(np.max([gap.score for gap in parts])), float(np.max(boxes)) if boxes else None)


def tensor_gap(trained: Runner, exported: Runner, images: NDArray[np.float32], head: Head, confidence: float) -> Gap:
    """The largest gap over images (N, 3, S, S), in batches of each size in BATCHES, repeated to fill one."""
    gaps = []
    for size in BATCHES:
        for start in range(0, len(images), size):
            batch = images[np.arange(start, start + size) % len(images)]
            gaps.append(compare_outputs(trained(batch), exported(batch), head, confidence))
    return largest(gaps)


def _edges(boxes_cxcywh: NDArray[np.float32]) -> NDArray[np.float32]:
    """Boxes (B, 4, A) as xyxy."""
    centre, half = boxes_cxcywh[:, :2], boxes_cxcywh[:, 2:] / 2
    return np.concatenate([centre - half, centre + half], axis=1)


def _closest_gap(rows: NDArray[np.float32], others: NDArray[np.float32]) -> float | None:
    """How far any box of `rows` (N, 6) lies from the closest of its class in `others`; infinite when there is none."""
    if len(rows) == 0:
        return None
    edges = np.abs(rows[:, None, :4] - others[None, :, :4]).max(axis=2)
    edges[rows[:, None, 5] != others[None, :, 5]] = np.inf
    return float(edges.min(axis=1).max())
