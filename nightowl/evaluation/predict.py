"""Detections on images that nobody labelled, for use: the exported model, in any form, run as it was
measured, from its operating point up.

An image that cannot be read is said and does not stop the others.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from nightowl.data.images import load_bgr
from nightowl.errors import DataError, StorageError, UserError
from nightowl.evaluation.detect import finish, merged, model_of, views_of
from nightowl.evaluation.draw import DrawnBox, class_colour, draw_boxes
from nightowl.evaluation.metrics import Unit
from nightowl.evaluation.postprocess import Found
from nightowl.evaluation.runners import ShippedRunner
from nightowl.files import write_atomic, write_record
from nightowl.progress import track
from nightowl.records import Record


class Detection(Record):
    """One object found; `box_xyxy` in pixels of the image as seen."""

    class_name: str
    confidence: Unit
    box_xyxy: tuple[float, float, float, float]


class Prediction(Record):
    """What was found on one image, best first; `error` says why it could not be looked at, and then nothing is known."""

    image: str
    width: int | None
    height: int | None
    detections: tuple[Detection, ...] | None
    drawn: str | None = None
    error: str | None = None


class Predictions(Record):
    """A run of `nightowl predict`: the model, the thresholds in force (one a class, in order), and what was found."""

    model: str
    weights_sha256: str
    classes: tuple[str, ...]
    thresholds: tuple[Unit, ...]
    images: tuple[Prediction, ...]

    @property
    def num_failed(self) -> int:
        return sum(image.error is not None for image in self.images)


def predict(
    runner: ShippedRunner, name: str, paths: Sequence[Path], confidence: float | None = None, output: Path | None = None
) -> Predictions:
    """Detections on each image; with `output`, drawn images and `predictions.json` go there.

    Args:
        runner: the model; `name` is what it is called in the record.
        confidence: from where a detection counts; None takes the model's own operating point.

    Raises:
        UserError: when neither `confidence` nor the model says from where a detection counts.
    """
    thresholds = _thresholds(runner, name, confidence)
    targets = _targets(paths, output)
    images = [_one(runner, path, thresholds, target) for path, target in track(targets, "predict")]
    model = runner.card.model
    result = Predictions(
        model=name,
        weights_sha256=model.weights_sha256,
        classes=model.classes,
        thresholds=tuple(float(t) for t in thresholds),
        images=tuple(images),
    )
    if output is not None:
        write_record(output / "predictions.json", result)
    return result


def look(runner: ShippedRunner, name: str, image_bgr: NDArray[np.uint8], thresholds: NDArray[np.float32]) -> Found:
    """What is found on one image (H, W, 3) from the thresholds (C,) up, best first. Raises StageFailed on NaN."""
    limits = runner.card.limits
    ready = model_of(runner.card.model, runner)
    views = views_of(image_bgr, ready)
    tiles = [finish(name, runner(tensor[None])[0], plan, window, ready, limits) for tensor, plan, window in views]
    found = merged(tiles, ready, limits)
    counts = found.score >= thresholds[found.class_id]
    return Found(found.boxes_xyxy[counts], found.score[counts], found.class_id[counts])


def _thresholds(runner: ShippedRunner, name: str, confidence: float | None) -> NDArray[np.float32]:
    floor = runner.card.limits.confidence_floor
    if confidence is not None:
        if not floor <= confidence <= 1:
            raise UserError(f"--confidence must lie from {floor} (below it {name} keeps nothing) to 1, got {confidence}")
        return np.full(len(runner.card.model.classes), confidence, np.float32)
    thresholds = runner.card.operating.thresholds()
    if thresholds is None:
        raise UserError(f"{name} has no operating point (it found nothing right on val); give one: --confidence 0.25")
    return thresholds


def _one(runner: ShippedRunner, path: Path, thresholds: NDArray[np.float32], target: Path | None) -> Prediction:
    try:
        image = load_bgr(path)
    except DataError as error:
        return Prediction(image=str(path), width=None, height=None, detections=None, error=str(error))
    found = look(runner, str(path), image, thresholds)
    classes = runner.card.model.classes
    detections = [
        Detection(class_name=classes[class_id], confidence=min(round(score, 4), 1.0), box_xyxy=tuple(round(v, 2) for v in box))
        for box, score, class_id in zip(*(part.tolist() for part in found), strict=True)
    ]
    drawn = None if target is None else _draw(image, found, classes, target)
    height, width = image.shape[:2]
    return Prediction(image=str(path), width=width, height=height, detections=tuple(detections), drawn=drawn and drawn.name)


def _draw(image: NDArray[np.uint8], found: Found, classes: tuple[str, ...], target: Path) -> Path:
    boxes = [
        DrawnBox((box[0], box[1], box[2], box[3]), f"{classes[class_id]} {score:.2f}", class_colour(class_id))
        for box, score, class_id in zip(*(part.tolist() for part in found), strict=True)
    ]
    encoded, content = cv2.imencode(".jpg", draw_boxes(image, boxes), [cv2.IMWRITE_JPEG_QUALITY, 92])
    if not encoded:
        raise StorageError(f"{target}: the drawn image could not be encoded as JPEG")
    write_atomic(target, content.tobytes())
    return target


def _targets(paths: Sequence[Path], output: Path | None) -> list[tuple[Path, Path | None]]:
    """Where each image is drawn: NAME.detections.jpg, numbered where two images share a name; never onto an input."""
    seen: Counter[str] = Counter()
    targets: list[tuple[Path, Path | None]] = []
    for path in paths:
        seen[path.name] += 1
        number = f".{seen[path.name]}" if seen[path.name] > 1 else ""
        targets.append((path, output and output / f"{path.name}{number}.detections.jpg"))
    return targets
