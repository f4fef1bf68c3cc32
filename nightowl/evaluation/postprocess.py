"""From what a network says to detections, in numpy alone, so that a machine with only onnxruntime can ship it.

A `raw` head says boxes and a score a class for every anchor: overlapping ones are thinned class by class, several classes a
box allowed, with the results of ultralytics' non_max_suppression as its validator calls it. An `end2end` head has done so
itself. Shapes: A anchors, C classes, N detections. Boxes are pixels of the network's input.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Head = Literal["raw", "end2end"]
MAX_CANDIDATES = 30_000


class Found(NamedTuple):
    """Detections of one image, best first: boxes_xyxy (N, 4) float32, score (N,) float32, class_id (N,) int32."""

    boxes_xyxy: NDArray[np.float32]
    score: NDArray[np.float32]
    class_id: NDArray[np.int32]


def decode(output: NDArray[np.float32], head: Head, *, confidence: float, iou: float, max_detections: int) -> Found:
    """Detections of one image from its head: (4 + C, A) cxcywh and scores when raw, (N, 6) xyxy, score, class when end2end.

    Only scores above `confidence` count; of two boxes of a class that overlap by more than `iou` the better one stays.
    """
    if head == "end2end":
        return _decode_end2end(output, confidence, max_detections)
    candidates = _candidates(output, confidence)
    kept = suppress(candidates, iou, max_detections)
    return Found(candidates.boxes_xyxy[kept], candidates.score[kept], candidates.class_id[kept])


def suppress(found: Found, iou: float, max_detections: int) -> NDArray[np.int64]:
    """Indices of the detections that stay, best first; `found` is sorted best first.

    Going through all classes in one order of score lets it stop at `max_detections`; only equal classes suppress.
    """
    boxes, classes = found.boxes_xyxy, found.class_id
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    left = np.arange(len(boxes))
    kept: list[int] = []
    while len(left) and len(kept) < max_detections:
        best, left = left[0], left[1:]
        kept.append(int(best))
        corners = np.maximum(boxes[best, :2], boxes[left, :2]), np.minimum(boxes[best, 2:], boxes[left, 2:])
        sides = np.maximum(corners[1] - corners[0], 0)
        overlap = sides[:, 0] * sides[:, 1]
        with np.errstate(invalid="ignore"):  # two boxes without area have no IoU; neither suppresses the other
            too_close = overlap / (areas[best] + areas[left] - overlap) > np.float64(iou)
        left = left[~too_close | (classes[left] != classes[best])]
    return np.array(kept, np.int64)


def _candidates(output: NDArray[np.float32], confidence: float) -> Found:
    """Every (box, class) above the confidence, best first, at most MAX_CANDIDATES."""
    boxes, scores = output[:4].T, output[4:].T
    anchor, class_id = np.nonzero(scores > np.float32(confidence))
    score = scores[anchor, class_id]
    order = np.argsort(-score, kind="stable")[:MAX_CANDIDATES]
    anchor, class_id, score = anchor[order], class_id[order], score[order]
    centre, half = boxes[anchor, :2], boxes[anchor, 2:] / np.float32(2)
    return Found(np.concatenate([centre - half, centre + half], axis=1), score, class_id.astype(np.int32))


def _decode_end2end(output: NDArray[np.float32], confidence: float, max_detections: int) -> Found:
    rows = output[output[:, 4] > np.float32(confidence)]
    rows = rows[np.argsort(-rows[:, 4], kind="stable")][:max_detections]
    return Found(rows[:, :4], rows[:, 4], rows[:, 5].astype(np.int32))
