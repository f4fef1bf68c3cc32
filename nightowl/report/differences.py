"""What changed against the champion, and which labels are suspicious, read from kept detections and drawn on their images."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nightowl.data.manifest import Image, Manifest
from nightowl.evaluation.changes import WORSE, Change, what_changed
from nightowl.evaluation.detections import read_detections
from nightowl.evaluation.measure import NO_THRESHOLD
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.suspicious import Suspicion, suspicious_labels
from nightowl.evaluation.truth import truth_of
from nightowl.report.content import Differences, LabelDoubts, Thumbnail
from nightowl.report.gallery import DrawnOn, Pixels, thumbnail
from nightowl.stages.workspace import Workspace

MAX_CHANGED, MAX_DOUBTED = 12, 8
_KINDS = {"new_miss": "missed", "new_false_alarm": "false", "new_find": "found", "gone_false_alarm": "gone"}


def differences(workspace: Workspace, dataset: Manifest, pixels: Pixels) -> Differences | None:
    """Each model at its own operating point, over the classes in common; None where no champion was measured."""
    if not workspace.detections("champion").exists() or not workspace.champion_operating.exists():
        return None
    champion = read_detections(workspace.detections("champion"))
    candidate = read_detections(workspace.detections("candidate")).with_classes(champion.classes)
    ours, theirs = _operating(workspace.operating).among(champion.classes), _operating(workspace.champion_operating)
    truth = truth_of(dataset.classes, dataset.of("test"), champion.classes)
    changes = what_changed(truth, candidate, _from(ours), champion, _from(theirs))
    images = {image.path: image for image in dataset.of("test")}
    per_image = [list(group) for _, group in groupby(changes.changes, key=lambda change: change.image)]
    shown = [group for group in per_image if any(change.kind in WORSE for change in group)][:MAX_CHANGED]
    return Differences(changes=changes, worst=tuple(_changed(images[group[0].image], group, pixels) for group in shown))


def label_doubts(workspace: Workspace, dataset: Manifest, pixels: Pixels) -> LabelDoubts | None:
    """The labels of test that are worth a second look, the most suspicious with a picture. None where the model has no
    operating point: it found nothing right, and would doubt every label."""
    if _operating(workspace.operating).thresholds() is None:
        return None
    candidate = read_detections(workspace.detections("candidate"))
    others = [read_detections(path) for whose in ("champion", "reference") if (path := workspace.detections(whose)).exists()]
    listed = suspicious_labels(truth_of(dataset.classes, dataset.of("test")), candidate, others)
    images = {image.path: image for image in dataset.of("test")}
    shown = list(dict.fromkeys(each.image for each in listed))[:MAX_DOUBTED]
    return LabelDoubts(
        listed=listed,
        pictures=tuple(_doubted(images[path], [each for each in listed if each.image == path], pixels) for path in shown),
    )


def _operating(path: Path) -> OperatingPoint:
    return OperatingPoint.model_validate_json(path.read_bytes())


def _from(point: OperatingPoint) -> float | NDArray[np.float32]:
    thresholds = point.thresholds()
    return NO_THRESHOLD if thresholds is None else thresholds


def _changed(image: Image, changes: Sequence[Change], pixels: Pixels) -> Thumbnail:
    boxes = [DrawnOn(_KINDS[change.kind], change.name, change.score, change.box_xyxy) for change in changes]
    return thumbnail(image, boxes, pixels)


def _doubted(image: Image, doubts: Sequence[Suspicion], pixels: Pixels) -> Thumbnail:
    kinds = ["missed" if each.why == "never found" else "false" for each in doubts]
    boxes = [DrawnOn(kind, each.name, each.score, each.box_xyxy) for kind, each in zip(kinds, doubts, strict=True)]
    return thumbnail(image, boxes, pixels)
