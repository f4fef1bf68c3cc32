"""A model on one split of a pinned dataset: its images read and checked, its detections made, its figures taken.

Every image is compared with the digest that the manifest holds, so that what was measured is what was pinned.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nightowl.data.images import decode_bgr, verified_bytes
from nightowl.data.manifest import Image, Manifest, Split
from nightowl.errors import DataError
from nightowl.evaluation.detect import Detected, Model, Source, detect
from nightowl.evaluation.evaluate import Measured, Subject, evaluate
from nightowl.evaluation.slices import Slice
from nightowl.evaluation.truth import truth_of
from nightowl.params import EvaluateParams

NO_THRESHOLD = 0.25  # for the confusion matrix of a model that found nothing right on val


def sources_of(dataset: Manifest, split: Split, folder: Path) -> list[Source]:
    """The images of a split, read from the source folder. Raises DataError when it has none."""
    images = dataset.of(split)
    if not images:
        raise DataError(f"{split}: no images; nothing can be measured, so give this split some (params: data.split)")
    return [source_of(image, folder) for image in images]


def source_of(image: Image, folder: Path) -> Source:
    """An image of a manifest, read from the source folder and checked."""
    return Source(image.path, partial(_pixels, folder, image))


def detect_split(model: Model, dataset: Manifest, split: Split, folder: Path, limits: EvaluateParams) -> Detected:
    """What a model finds on every image of a split. Raises DataError when an image is gone or has changed."""
    return detect(model, sources_of(dataset, split, folder), limits, f"evaluate {split}")


def measure(
    dataset: Manifest,
    classes: tuple[str, ...],
    found: Detected,
    subject: Subject,
    limits: EvaluateParams,
    confidence: float | None,
    slices: Sequence[Slice] = (),
) -> Measured:
    """Figures of detections on the test split, over `classes`; some of the dataset's may occur in none of its images.

    `confidence` is the model's overall operating point, for the confusion matrix.
    """
    return evaluate(
        truth_of(dataset.classes, dataset.of("test"), classes),
        found.detections,
        subject,
        max_detections=limits.max_detections,
        confusion_confidence=NO_THRESHOLD if confidence is None else confidence,
        truth_needed=classes == dataset.classes,
        slices=slices,
    )


def _pixels(folder: Path, image: Image) -> NDArray[np.uint8]:
    return decode_bgr(verified_bytes(folder, image), image.path)
