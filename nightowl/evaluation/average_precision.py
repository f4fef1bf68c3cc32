"""Average precision as COCO defines it, computed by faster-coco-eval; equal to pycocotools, crowds ignored.

A class without truth has no average precision: its entries are NaN here and None in the records, never zero.
"""

from dataclasses import dataclass

import numpy as np
from faster_coco_eval import COCO, COCOeval_faster
from numpy.typing import NDArray

from nightowl.evaluation.detections import Detections
from nightowl.evaluation.truth import Truth

EVERY_AREA = [0.0, 1e10]


@dataclass(frozen=True, slots=True, eq=False)
class AveragePrecision:
    """Precision (T, R, C) at T IoU thresholds (0.50 to 0.95 in steps of 0.05), R = 101 recall points, of C classes."""

    iou_thresholds: NDArray[np.float64]
    recall_points: NDArray[np.float64]
    precision: NDArray[np.float64]

    def per_class(self, iou: float | None = None) -> NDArray[np.float64]:
        """Average precision (C,) at one IoU threshold, or over all of them; NaN for a class without truth."""
        chosen = slice(None) if iou is None else np.isclose(self.iou_thresholds, iou)
        average: NDArray[np.float64] = self.precision[chosen].mean(axis=(0, 1))
        return average


def average_precision(truth: Truth, detections: Detections, max_detections: int) -> AveragePrecision:
    """Average precision of detections against truth with the same images and classes, `max_detections` an image and class."""
    reference, results = _reference(truth), _results(detections)
    scorer = COCOeval_faster(reference, reference.loadRes(results), iouType="bbox", print_function=_silent)
    scorer.params.maxDets = [max_detections]
    scorer.params.areaRng, scorer.params.areaRngLbl = [EVERY_AREA], ["all"]
    scorer.evaluate()
    scorer.accumulate()
    precision = np.asarray(scorer.eval["precision"], np.float64)[..., 0, 0]
    thresholds, recall = np.asarray(scorer.params.iouThrs), np.asarray(scorer.params.recThrs)
    return AveragePrecision(thresholds, recall, np.where(precision < 0, np.nan, precision))


def _reference(truth: Truth) -> COCO:
    boxes = _xywh(truth.boxes_xyxy)
    reference = COCO(print_function=_silent)
    reference.dataset = {
        "images": [{"id": index + 1} for index in range(len(truth.images))],
        "categories": [{"id": index + 1, "name": name} for index, name in enumerate(truth.classes)],
        "annotations": [
            {
                "id": index + 1,
                "image_id": int(truth.image_index[index]) + 1,
                "category_id": int(truth.class_id[index]) + 1,
                "bbox": box,
                "area": box[2] * box[3],
                "iscrowd": int(truth.ignore[index]),
            }
            for index, box in enumerate(boxes)
        ],
    }
    reference.createIndex()
    return reference


def _results(detections: Detections) -> list[dict[str, object]]:
    images, classes, scores = detections.image_index.tolist(), detections.class_id.tolist(), detections.score.tolist()
    return [
        {"image_id": image + 1, "category_id": class_id + 1, "bbox": box, "score": score}
        for image, class_id, score, box in zip(images, classes, scores, _xywh(detections.boxes_xyxy), strict=True)
    ]


def _xywh(boxes_xyxy: NDArray[np.floating]) -> list[list[float]]:
    boxes = boxes_xyxy.astype(np.float64)
    rows: list[list[float]] = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1).tolist()
    return rows


def _silent(*words: object) -> None:
    """faster-coco-eval tells its progress through a function; ours is told elsewhere."""
