"""Questions to kept detections: figures on a slice, on files that match, or from a confidence up, without running a model.

A folder of the stage evaluate and a bundle both hold what is needed: the detections, the labels of the same images, the slices.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nightowl.errors import UserError
from nightowl.evaluation.bootstrap import group_index
from nightowl.evaluation.detections import Detections, read_detections
from nightowl.evaluation.evaluate import Measured, Subject, evaluate
from nightowl.evaluation.operating import ClassThreshold, OperatingPoint
from nightowl.evaluation.operating_figures import OperatingFigures, operating_figures
from nightowl.evaluation.slices import Slices, members
from nightowl.evaluation.truth import Truth
from nightowl.evaluation.truth_table import read_truth

NAMES = ("detections.parquet", "candidate.parquet")  # in a bundle, and in the folder of the stage


class Kept(NamedTuple):
    """What a folder holds: detections, the labels of the same images and classes, the slices of them, the model's own point."""

    truth: Truth
    detections: Detections
    slices: Slices
    operating: OperatingPoint | None


class Answer(NamedTuple):
    """Figures of the images asked for; `rates` at a confidence, None where the model has none and none was named."""

    measured: Measured
    rates: OperatingFigures | None


def read_kept(folder: Path) -> Kept:
    """What was kept in `folder`.

    Raises:
        UserError: when it holds no detections. DataError: when a file in it is not what it should be.
    """
    table = next((folder / name for name in NAMES if (folder / name).exists()), None)
    if table is None:
        raise UserError(f"{folder}: expected {' or '.join(NAMES)}; a bundle or the folder out/DETECTOR/evaluate holds one")
    detections = read_detections(table)
    slices, operating = folder / "slices.json", folder / "operating.json"
    return Kept(
        read_truth(folder / "truth.parquet").among(detections.classes),
        detections,
        Slices.model_validate_json(slices.read_bytes()) if slices.exists() else Slices(slices=()),
        OperatingPoint.model_validate_json(operating.read_bytes()) if operating.exists() else None,
    )


def narrow(kept: Kept, slice_name: str | None = None, pattern: str | None = None) -> Kept:
    """Only the images of a slice, or those whose path matches `pattern`, or both.

    Raises:
        UserError: when there is no such slice, or no image is left.
    """
    inside = np.ones(len(kept.truth.images), np.bool_)
    if slice_name is not None:
        named = {one.name: one for one in kept.slices.slices}
        if slice_name not in named:
            raise UserError(f"--slice {slice_name}: no such slice; there are {', '.join(named) or 'none'}")
        inside &= members(kept.truth.images, named[slice_name])
    if pattern is not None:
        inside &= np.array([re.search(pattern, path) is not None for path in kept.truth.images], np.bool_)
    if not inside.any():
        raise UserError(f"no image is left of {len(inside)}: loosen --slice or --pattern")
    return kept._replace(truth=kept.truth.of_images(inside), detections=kept.detections.of_images(inside))


def answer(kept: Kept, confidence: float | None, max_detections: int) -> Answer:
    """Every figure of what is left, and the rates from `confidence` up, or at the model's own operating point.

    Raises:
        DataError: when the images hold no labelled object.
    """
    point = kept.operating if confidence is None else _at(kept, confidence)
    shown = point.overall if point and point.overall is not None else 0.25
    subject = Subject("kept", "", "", "kept", 0.0)
    measured = evaluate(kept.truth, kept.detections, subject, max_detections=max_detections, confusion_confidence=shown)
    groups = group_index(kept.truth.images)
    rates = operating_figures(kept.truth, kept.detections, point, groups, 0.95, 1000, "kept") if point else None
    return Answer(measured, rates)


def _at(kept: Kept, confidence: float) -> OperatingPoint:
    classes = tuple(ClassThreshold(name=name, confidence=confidence) for name in kept.truth.classes)
    return OperatingPoint(rule="named", split="", dataset_version="", overall=confidence, classes=classes)
