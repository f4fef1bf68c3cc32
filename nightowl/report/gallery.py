"""Test images with truth and detections, worst first: what the figures look like.

Matching is the evaluation's own (IoU 0.5, class by class), from the operating confidence up. Pixels are those that were pinned
or none: an image that changed since, or is gone, is shown by its boxes alone. One image is in memory at a time.
"""

import base64
import io
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from nightowl.data.manifest import Image, Manifest
from nightowl.errors import DataError
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.truth import FALSE_ALARM, Truth, match, truth_of
from nightowl.report.content import DrawnBox, Gallery, Thumbnail

NUM_WORST, NUM_BEST = 16, 8
MAX_SIDE_PX = 480
MAX_JPEG_BYTES = 70_000
MAX_BOXES = 150
_QUALITIES = (82, 70, 55, 40, 25)
_LAYERS = ("crowd", "gone", "found", "in_crowd", "right", "missed", "false")

Pixels = Callable[[Image], NDArray[np.uint8]]


class DrawnOn(NamedTuple):
    """A box to draw, boxes_xyxy in the image's own pixels; `score` is None for truth."""

    kind: str
    name: str
    score: float | None
    box_xyxy: NDArray[np.floating] | tuple[float, float, float, float]


class _Matched(NamedTuple):
    """Truth and detections of the images, and which found which: `hit` (N,) and `found` (M,)."""

    truth: Truth
    detections: Detections
    matched: NDArray[np.int64]
    found: NDArray[np.bool_]

    def missed(self) -> NDArray[np.bool_]:
        return ~self.found & ~self.truth.ignore

    def errors(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Missed objects and false alarms, an image."""
        num = len(self.truth.images)
        missed = np.bincount(self.truth.image_index[self.missed()], minlength=num)
        alarms = np.bincount(self.detections.image_index[self.matched == FALSE_ALARM], minlength=num)
        return missed, alarms


def build_gallery(dataset: Manifest, detections: Detections, confidence: float, pixels: Pixels) -> Gallery:
    """The gallery of the test split. `pixels` loads an image (H, W, 3) BGR as seen, and raises DataError where it cannot.

    Raises:
        DataError: when the detections are of other images or classes than the dataset's test split.
    """
    images = dataset.of("test")
    if detections.images != tuple(image.path for image in images) or detections.classes != dataset.classes:
        raise DataError("the detections are of other images or classes than the test split; run the stage evaluate again")
    matched = _match(dataset.classes, images, detections.from_confidence(confidence))
    missed, alarms = matched.errors()
    worst, best = choose(missed + alarms, np.bincount(matched.truth.image_index, minlength=len(images)))
    return Gallery(
        confidence=confidence,
        num_images=len(images),
        num_without_error=int((missed + alarms == 0).sum()),
        worst=tuple(thumbnail(images[i], _matched_boxes(i, matched), pixels) for i in worst),
        best=tuple(thumbnail(images[i], _matched_boxes(i, matched), pixels) for i in best),
    )


def choose(errors: NDArray[np.int64], num_truth: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Which images to show: most errors first, and only such with any; then of those without, the ones with most objects."""
    indices = range(len(errors))
    worst = sorted((i for i in indices if errors[i]), key=lambda i: (-errors[i], i))[:NUM_WORST]
    best = sorted((i for i in indices if not errors[i]), key=lambda i: (-num_truth[i], i))[:NUM_BEST]
    return worst, best


def encode_jpeg(image_bgr: NDArray[np.uint8], max_side_px: int = MAX_SIDE_PX) -> tuple[str, int, int]:
    """The image (H, W, 3) as a base64 JPEG, `max_side_px` a side and about MAX_JPEG_BYTES at most; its width, its height."""
    picture = PIL.Image.fromarray(np.ascontiguousarray(image_bgr[..., ::-1]))
    picture.thumbnail((max_side_px, max_side_px), PIL.Image.Resampling.LANCZOS)
    content = b""
    for quality in _QUALITIES:
        out = io.BytesIO()
        picture.save(out, "JPEG", quality=quality)
        content = out.getvalue()
        if len(content) <= MAX_JPEG_BYTES:
            break
    return base64.b64encode(content).decode("ascii"), picture.width, picture.height


def _match(classes: tuple[str, ...], images: tuple[Image, ...], detections: Detections) -> _Matched:
    truth = truth_of(classes, images)
    matched = match(truth, detections)
    found = np.zeros(len(truth.class_id), np.bool_)
    found[matched[matched >= 0]] = True
    return _Matched(truth, detections, matched, found)


def thumbnail(image: Image, boxes: Sequence[DrawnOn], pixels: Pixels) -> Thumbnail:
    """A picture of the image with `boxes`, the errors on top."""
    try:
        jpeg, width, height = encode_jpeg(pixels(image))
        note = None
    except DataError as error:
        scale = min(1.0, MAX_SIDE_PX / max(image.width, image.height))
        jpeg, width, height = None, max(1, round(image.width * scale)), max(1, round(image.height * scale))
        note = str(error)
    factors = np.array([width / image.width, height / image.height] * 2)
    drawn = [_box(box, factors) for box in sorted(boxes, key=lambda box: _LAYERS.index(box.kind))]
    kinds = Counter(box.kind for box in boxes)
    return Thumbnail(
        path=image.path,
        width=width,
        height=height,
        jpeg=jpeg,
        note=note,
        num_missed=kinds["missed"],
        num_false=kinds["false"],
        num_truth=sum(not box.ignore for box in image.boxes),
        num_boxes_left_out=max(0, len(drawn) - MAX_BOXES),
        boxes=tuple(drawn[-MAX_BOXES:]),
    )


def _matched_boxes(index: int, matched: _Matched) -> list[DrawnOn]:
    """Truth and detections of one image, each with what became of it."""
    truth, found = matched.truth, matched.detections
    boxes = []
    for i in np.flatnonzero(truth.image_index == index):
        kind = "crowd" if truth.ignore[i] else "found" if matched.found[i] else "missed"
        boxes.append(DrawnOn(kind, truth.classes[truth.class_id[i]], None, truth.boxes_xyxy[i]))
    for i in np.flatnonzero(found.image_index == index):
        kind = "right" if matched.matched[i] >= 0 else "false" if matched.matched[i] == FALSE_ALARM else "in_crowd"
        boxes.append(DrawnOn(kind, found.classes[found.class_id[i]], float(found.score[i]), found.boxes_xyxy[i]))
    return boxes


def _box(box: DrawnOn, factors: NDArray[np.float64]) -> DrawnBox:
    x1, y1, x2, y2 = (round(float(value), 1) for value in np.asarray(box.box_xyxy) * factors)
    corners = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return DrawnBox.model_validate({"kind": box.kind, "name": box.name, "score": box.score, **corners})
