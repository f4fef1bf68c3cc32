"""From an image file to boxes, by the trained model and by the file that ships: which detections do they share?

Detections that count with one are looked for among all that the other keeps, so that a score at the edge of a threshold is a
difference of scores, not a lost box. Pairs are of one class and lie on each other by
IoU 0.5, or within a pixel.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.detect import Source
from nightowl.evaluation.detections import Detections, gather
from nightowl.evaluation.measure import NO_THRESHOLD
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.postprocess import Found
from nightowl.evaluation.predict import look
from nightowl.evaluation.runners import ShippedRunner
from nightowl.evaluation.truth import overlaps
from nightowl.export.parity import ParityCheck, check
from nightowl.export_params import PrecisionLimits

T = TypeVar("T")

NUM_PATH_IMAGES = 72
_LEAST_IOU = 0.5
_SAME_PX = 1.0  # boxes that clipping to the image left without area have no IoU


class PathGap(NamedTuple):
    """Largest difference of a score, and of a box edge in pixels of the image (None: no pair); of `num_boxes` detections,
    both sides', how many the other has not."""

    score: float | None
    box_px: float | None
    num_unmatched: int
    num_boxes: int


def spread(images: Sequence[T], num: int) -> list[T]:
    """`num` of them, from first to last, or all there are."""
    places = np.linspace(0, len(images) - 1, min(num, len(images))).round().astype(int)
    return [images[place] for place in places]


def thresholds_of(point: OperatingPoint, num_classes: int) -> NDArray[np.float32]:
    """From where a detection of each class (C,) counts; of a model without an operating point a usual one."""
    thresholds = point.thresholds()
    return np.full(num_classes, NO_THRESHOLD, np.float32) if thresholds is None else thresholds


def look_at_all(runner: ShippedRunner, sources: Sequence[Source]) -> Detections:
    """All that the file finds, image by image, as `nightowl predict` finds it, down to the floor of its own card."""
    card = runner.card
    floor = np.full(len(card.model.classes), card.limits.confidence_floor, np.float32)
    found = [look(runner, source.name, source.load(), floor) for source in sources]
    return gather(card.model.classes, [source.name for source in sources], found)


def compare_paths(
    trained: Detections, shipped: Detections, from_trained: NDArray[np.float32], from_shipped: NDArray[np.float32]
) -> PathGap:
    """The gap between detections on the same images and classes, each side's counting from its threshold a class (C,) up."""
    pairs = list[tuple[float, float] | None]()
    for image in trained.images:
        ours, theirs = trained.of_image(image), shipped.of_image(image)
        pairs += _partners(_counting(ours, from_trained), theirs)
        pairs += _partners(_counting(theirs, from_shipped), ours)
    known = [pair for pair in pairs if pair is not None]
    score, box_px = (max(part) for part in zip(*known, strict=True)) if known else (None, None)
    return PathGap(score, box_px, len(pairs) - len(known), len(pairs))


def path_checks(gap: PathGap, limits: PrecisionLimits) -> tuple[ParityCheck, ...]:
    """The gap against its limits. Without a single detection on either side only their number is compared: none is lost."""
    share = gap.num_unmatched / gap.num_boxes if gap.num_boxes else 0.0
    lost = f"{gap.num_unmatched} of {gap.num_boxes}" if gap.num_unmatched else None
    unmatched = check("detections without a counterpart, from file to box", share, limits.max_unmatched, lost)
    if gap.num_boxes == 0:
        return (unmatched,)
    return (
        unmatched,
        check("largest score gap, from file to box", gap.score, limits.max_path_score_gap),
        check("largest box gap, from file to box, px", gap.box_px, limits.max_path_box_gap_px),
    )


def _counting(found: Found, thresholds: NDArray[np.float32]) -> Found:
    kept = found.score >= thresholds[found.class_id]
    return Found(found.boxes_xyxy[kept], found.score[kept], found.class_id[kept])


def _partners(found: Found, others: Found) -> list[tuple[float, float] | None]:
    """For each detection the differences of score and of any edge to the closest of its class; None where none lies on it."""
    if len(found.score) == 0 or len(others.score) == 0:
        return [None] * len(found.score)
    edges = np.abs(found.boxes_xyxy[:, None] - others.boxes_xyxy[None]).max(axis=2)
    edges[found.class_id[:, None] != others.class_id[None]] = np.inf
    closest, rows = edges.argmin(axis=1), np.arange(len(found.score))
    table = overlaps(found.boxes_xyxy, others.boxes_xyxy, np.zeros(len(others.score), np.bool_))
    gap = edges[rows, closest]
    near = (gap <= _SAME_PX) | ((table[rows, closest] >= _LEAST_IOU) & np.isfinite(gap))
    scores = np.abs(found.score - others.score[closest]).tolist()
    return [(score, edge) if is_near else None for score, edge, is_near in zip(scores, gap.tolist(), near, strict=True)]
