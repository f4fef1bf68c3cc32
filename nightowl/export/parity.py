"""Does the exported model say what the trained one says? Compared tensor by tensor on real images, and by mAP on test.

A difference beyond its limit is a result (`passed` False), kept and reported; publishing is what refuses.
Shapes: B images, C classes, A anchors.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.postprocess import Head
from nightowl.evaluation.runners import Runner
from nightowl.params import ExportParams
from nightowl.records import Record

BATCHES = (1, 4)


class ParityCheck(Record):
    """One comparison; `figure` is None when it could not be measured, and then it does not pass."""

    rule: str
    passed: bool
    figure: float | None
    limit: float


class Parity(Record):
    """What ships against the weights it came from; a rule about another format than the ONNX begins with its name.

    `other_files` are those formats' files by name, with their SHA-256.
    """

    passed: bool
    checks: tuple[ParityCheck, ...]
    num_images: int
    weights_sha256: str
    onnx_sha256: str
    other_files: dict[str, str] = Field(default_factory=dict)


class Gap(NamedTuple):
    """Largest differences between two outputs: of any score, and of any box edge in input pixels (None: no box to compare)."""

    score: float
    box_px: float | None


def compare_outputs(ours: NDArray[np.float32], theirs: NDArray[np.float32], head: Head, confidence: float) -> Gap:
    """The gap between two outputs of one head for the same batch; see `Head`.

    An end-to-end head sorts by score and cuts, and near-equal scores may swap: scores are compared in order, boxes with the
    closest one of the same class, where the score reaches `confidence` and lies clear of the cut.
    """
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


def tensor_checks(trained: Runner, exported: Runner, images: NDArray[np.float32], head: Head, confidence: float) -> Gap:
    """The largest gap over images (N, 3, S, S), in batches of each size in BATCHES, repeated to fill one."""
    gaps = []
    for size in BATCHES:
        for start in range(0, len(images), size):
            batch = images[np.arange(start, start + size) % len(images)]
            gaps.append(compare_outputs(trained(batch), exported(batch), head, confidence))
    return largest(gaps)


def judge(gap: Gap, trained: Metrics, exported: Metrics, limits: ExportParams) -> tuple[ParityCheck, ...]:
    """Every figure against its limit."""
    known = trained.map50_95 is not None and exported.map50_95 is not None
    map_gap = abs(trained.map50_95 - exported.map50_95) if known else None  # type: ignore[operator]
    return (
        _check("largest score gap", gap.score, limits.max_score_gap),
        _check("largest box gap, px", gap.box_px, limits.max_box_gap_px),
        _check("mAP50-95 gap on test", map_gap, limits.max_map50_95_gap),
    )


def of_format(name: str, checks: Iterable[ParityCheck]) -> tuple[ParityCheck, ...]:
    """Checks of another format than the ONNX, named so."""
    return tuple(check.model_copy(update={"rule": f"{name}: {check.rule}"}) for check in checks)


def _check(rule: str, figure: float | None, limit: float) -> ParityCheck:
    known = None if figure is None or not np.isfinite(figure) else figure
    return ParityCheck(rule=rule, passed=known is not None and known <= limit, figure=known, limit=limit)


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
