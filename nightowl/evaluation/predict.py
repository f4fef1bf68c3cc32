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
from pydantic import ValidationError

from nightowl.data.images import IMAGE_SUFFIXES, load_bgr
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
    """A run of `nightowl predict`: the model, the thresholds in force (one a class, in order), and what was found.

    `drawn` of an image is relative to the folder of this record.
    """

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
    """Detections on each image, and on those in each folder; with `output`, drawn images and `predictions.json` go there, in
    place of those of an earlier run.

    Args:
        runner: the model; `name` is what it is called in the record.
        confidence: from where a detection counts; None takes the model's own operating point.

    Raises:
        UserError: when neither `confidence` nor the model says from where a detection counts; for a folder without images.
    """
    thresholds = _thresholds(runner, name, confidence)
    found = _drawn_as(images_in(paths, output))
    if output is not None:
        _remove_earlier(output)
    images = [_one(runner, path, thresholds, output, name) for path, name in track(found, "predict")]
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


def _one(runner: ShippedRunner, path: Path, thresholds: NDArray[np.float32], output: Path | None, name: str) -> Prediction:
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
    if output is not None:
        _draw(image, found, classes, output / name)
    height, width = image.shape[:2]
    return Prediction(image=str(path), width=width, height=height, detections=tuple(detections), drawn=name if output else None)


def _draw(image: NDArray[np.uint8], found: Found, classes: tuple[str, ...], target: Path) -> None:
    boxes = [
        DrawnBox((box[0], box[1], box[2], box[3]), f"{classes[class_id]} {score:.2f}", class_colour(class_id))
        for box, score, class_id in zip(*(part.tolist() for part in found), strict=True)
    ]
    encoded, content = cv2.imencode(".jpg", draw_boxes(image, boxes), [cv2.IMWRITE_JPEG_QUALITY, 92])
    if not encoded:
        raise StorageError(f"{target}: the drawn image could not be encoded as JPEG")
    write_atomic(target, content.tobytes())


def images_in(paths: Sequence[Path], output: Path | None = None) -> list[tuple[Path, str]]:
    """Each image with the name that its drawing begins with: of a folder those at any depth, by their path in it. What lies in
    `output` is none. Raises UserError for a folder without images."""
    found: list[tuple[Path, str]] = []
    apart = output.resolve() if output else None
    for path in paths:
        if not path.is_dir():
            found.append((path, path.name))
            continue
        inside = [each for each in sorted(path.rglob("*")) if each.suffix.lower() in IMAGE_SUFFIXES and each.is_file()]
        inside = [each for each in inside if apart is None or not each.resolve().is_relative_to(apart)]
        if not inside:
            raise UserError(f"{path}: no image in this folder; images end in {', '.join(sorted(IMAGE_SUFFIXES))}")
        found += [(each, each.relative_to(path).as_posix()) for each in inside]
    return found


def _drawn_as(images: Sequence[tuple[Path, str]]) -> list[tuple[Path, str]]:
    """Each image with the name of its drawing: NAME.detections.jpg, numbered where two share a name; never that of an input."""
    seen: Counter[str] = Counter()
    named: list[tuple[Path, str]] = []
    for path, name in images:
        seen[name] += 1
        number = f".{seen[name]}" if seen[name] > 1 else ""
        named.append((path, f"{name}{number}.detections.jpg"))
    return named


def _remove_earlier(output: Path) -> None:
    """Drawings that an earlier run left in `output`, as its record names them."""
    try:
        earlier = Predictions.model_validate_json((output / "predictions.json").read_bytes())
    except (FileNotFoundError, ValidationError):
        return
    for image in earlier.images:
        if image.drawn and not {"..", ""} & set(image.drawn.split("/")) and image.drawn.endswith(".detections.jpg"):
            (output / image.drawn).unlink(missing_ok=True)
