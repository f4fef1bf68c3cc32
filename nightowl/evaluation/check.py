"""What can be measured at all. Missing data are refused here, so that they never become a figure of zero."""

import numpy as np

from nightowl.errors import DataError, StageFailed
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.truth import Truth


def check_measurable(truth: Truth, detections: Detections, split: str, truth_needed: bool = True) -> None:
    """Refuse what would give figures that mean nothing.

    Raises:
        DataError: when there are no images, no truth where it is needed, or images or classes that only one of both has.
        StageFailed: when a score or a box is NaN or infinite, or a box has its corners the wrong way round; the image is named.
    """
    if not truth.images:
        raise DataError(f"{split}: no images; nothing can be measured, so give this split some (params: data.split)")
    _check_same_images(truth, detections, split)
    if truth.classes != detections.classes:
        raise DataError(
            f"{split}: the truth has classes {', '.join(truth.classes)}, the detections {', '.join(detections.classes)}; "
            "bring both to one list first (Detections.with_classes)"
        )
    if truth_needed and not truth.counts().sum():
        raise DataError(f"{split}: {len(truth.images)} images without a single labelled object; nothing can be measured")
    _check_boxes(truth, detections)


def _check_boxes(truth: Truth, detections: Detections) -> None:
    unlabelled = ~np.isfinite(truth.boxes_xyxy).all(axis=1)
    if unlabelled.any():
        at = int(np.argmax(unlabelled))
        raise DataError(f"{truth.images[truth.image_index[at]]}: a label has box {truth.boxes_xyxy[at]}; correct it")
    broken = ~(np.isfinite(detections.score) & np.isfinite(detections.boxes_xyxy).all(axis=1))
    if broken.any():
        at = int(np.argmax(broken))
        path = detections.images[detections.image_index[at]]
        raise StageFailed(f"{path}: a detection has score {detections.score[at]} and box {detections.boxes_xyxy[at]}")
    turned = (detections.boxes_xyxy[:, 2:] < detections.boxes_xyxy[:, :2]).any(axis=1)
    if turned.any():
        at = int(np.argmax(turned))
        path = detections.images[detections.image_index[at]]
        raise StageFailed(f"{path}: a detection has its corners the wrong way round: {detections.boxes_xyxy[at]}")


def _check_same_images(truth: Truth, detections: Detections, split: str) -> None:
    """An image that was labelled but never looked at is no miss, and one looked at without labels no false alarm."""
    if truth.images == detections.images:
        return
    unseen, unlabelled = (sorted(set(a) - set(b)) for a, b in _both_ways(truth.images, detections.images))
    faults = [
        f"{len(paths)} images {what}, first {paths[0]}"
        for paths, what in (
            (unseen, "have labels but were never looked at"),
            (unlabelled, "were looked at but are not labelled"),
        )
        if paths
    ]
    raise DataError(f"{split}: {'; '.join(faults) or 'truth and detections list the same images in another order'}")


def _both_ways(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    return (one, other), (other, one)
