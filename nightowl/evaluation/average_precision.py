"""Average precision and average recall as COCO defines them, computed by faster-coco-eval; equal to pycocotools.

Crowds count neither way, and neither do objects and detections of another size where one size is asked for. A class without
truth has no figures: its entries are NaN here and None in the records, never zero.

T IoU thresholds (0.50 to 0.95 in steps of 0.05), R = 101 recall points, C classes, A areas (all, small, medium, large), M
limits of detections an image and class.
"""

from dataclasses import dataclass

import numpy as np
from faster_coco_eval import COCOeval_faster, mask
from numpy.typing import NDArray

from nightowl.evaluation.detections import Detections
from nightowl.evaluation.sizes import AREAS, EVERY_AREA, SIZES, Size, areas
from nightowl.evaluation.truth import Truth

RECALL_LIMITS = (1, 10, 100)


@dataclass(frozen=True, slots=True, eq=False)
class AveragePrecision:
    """Precision (T, R, C, A) at the most detections that count, and the recall reached (T, C, A, M) at each of `limits`."""

    iou_thresholds: NDArray[np.float64]
    recall_points: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    limits: tuple[int, ...]

    def per_class(self, iou: float | None = None, size: Size | None = None) -> NDArray[np.float64]:
        """Average precision (C,) at one IoU threshold, or over all of them, of objects of one size or of any; NaN without."""
        chosen = slice(None) if iou is None else np.isclose(self.iou_thresholds, iou)
        average: NDArray[np.float64] = self.precision[chosen, :, :, _place(size)].mean(axis=(0, 1))
        return average

    def recall_per_class(self, limit: int, size: Size | None = None) -> NDArray[np.float64]:
        """Average recall (C,) over the IoU thresholds with `limit` detections an image and class; NaN without truth."""
        at = self.limits.index(min(limit, self.limits[-1]))
        average: NDArray[np.float64] = self.recall[:, :, _place(size), at].mean(axis=0)
        return average


def average_precision(truth: Truth, detections: Detections, max_detections: int) -> AveragePrecision:
    """Figures of detections against truth with the same images and classes, `max_detections` an image and class."""
    scorer = _Scorer(truth, detections)
    scorer.params.maxDets = sorted({*(min(limit, max_detections) for limit in RECALL_LIMITS), max_detections})
    scorer.params.areaRng = [list(EVERY_AREA), *(list(AREAS[size]) for size in SIZES)]
    scorer.params.areaRngLbl = ["all", *SIZES]
    scorer.evaluate()
    scorer.accumulate()
    precision, recall = (np.asarray(scorer.eval[name], np.float64) for name in ("precision", "recall"))
    return AveragePrecision(
        np.asarray(scorer.params.iouThrs),
        np.asarray(scorer.params.recThrs),
        np.where(precision < 0, np.nan, precision)[..., -1],
        np.where(recall < 0, np.nan, recall),
        tuple(scorer.params.maxDets),
    )


class _Boxes:
    """Boxes of every image and class, to be had by their place: detections best first, labels in their order, as xywh."""

    def __init__(self, truth: Truth, detections: Detections) -> None:
        self.num_classes = len(truth.classes)
        places = np.arange(len(truth.images) * self.num_classes + 1)
        key = truth.image_index.astype(np.int64) * self.num_classes + truth.class_id
        found_key = detections.image_index.astype(np.int64) * self.num_classes + detections.class_id
        order, found_order = np.argsort(key, kind="stable"), np.lexsort((-detections.score, found_key))
        self.objects, self.crowd = _xywh(truth.boxes_xyxy)[order], truth.ignore[order].astype(np.uint8)
        self.found = _xywh(detections.boxes_xyxy)[found_order]
        self.first = np.searchsorted(key[order], places).tolist()
        self.first_found = np.searchsorted(found_key[found_order], places).tolist()


class _Scorer(COCOeval_faster):  # type: ignore[misc]
    """faster-coco-eval fed from arrays: its own way there, JSON records of every box and their indices, takes longer than the
    matching itself. Images and classes are numbered from 1."""

    def __init__(self, truth: Truth, detections: Detections) -> None:
        super().__init__(iouType="bbox", print_function=_silent)
        self.params.imgIds = list(range(1, len(truth.images) + 1))
        self.params.catIds = list(range(1, len(truth.classes) + 1))
        self.truth, self.detections, self.boxes = truth, detections, _Boxes(truth, detections)

    def _prepare(self) -> None:
        """Gives the records that the matching reads, and the pairs of image and class whose overlaps it needs."""
        truth, detections = self.truth, self.detections
        crowds, scores = truth.ignore.astype(int).tolist(), detections.score.tolist()
        objects = zip(_places(truth), areas(truth.boxes_xyxy).tolist(), crowds, strict=True)
        for id_, (place, area, crowd) in enumerate(objects, 1):
            self.gt_dataset.append_ref(*place, {"id": id_, "area": area, "iscrowd": crowd, "ignore": crowd})
        found = zip(_places(detections), areas(detections.boxes_xyxy).tolist(), scores, strict=True)
        for id_, (place, area, score) in enumerate(found, 1):
            self.dt_dataset.append_ref(*place, {"id": id_, "area": area, "score": score})
        self._nonempty_iou_pairs = set(_places(truth)) & set(_places(detections))

    def computeIoU(self, imgId: int, catId: int) -> NDArray[np.float64]:  # noqa: N802, N803  upstream's names
        boxes, place = self.boxes, (imgId - 1) * self.boxes.num_classes + catId - 1
        own = slice(boxes.first[place], boxes.first[place + 1])
        first, last = boxes.first_found[place], boxes.first_found[place + 1]
        found = boxes.found[first : min(last, first + self.params.maxDets[-1])]
        overlaps: NDArray[np.float64] = mask.iou(found, boxes.objects[own], boxes.crowd[own])
        return overlaps


def _places(boxes: Truth | Detections) -> list[tuple[int, int]]:
    """Image and class of each, numbered as faster-coco-eval is told."""
    return list(zip((boxes.image_index + 1).tolist(), (boxes.class_id + 1).tolist(), strict=True))


def _place(size: Size | None) -> int:
    return 0 if size is None else 1 + SIZES.index(size)


def _xywh(boxes_xyxy: NDArray[np.floating]) -> NDArray[np.float64]:
    boxes = boxes_xyxy.astype(np.float64)
    return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)


def _silent(*words: object) -> None:
    """faster-coco-eval tells its progress through a function; ours is told elsewhere."""
