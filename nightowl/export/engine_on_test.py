"""An engine on the images that its version was measured on. What the trained model found there is in the bundle; the images
themselves are where the source is, and a machine that builds engines may not have them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nightowl.data.manifest import read_manifest
from nightowl.errors import DataError
from nightowl.evaluation.detect import Source, detect, model_of
from nightowl.evaluation.detections import Detections, read_detections
from nightowl.evaluation.evaluate import Subject, evaluate
from nightowl.evaluation.measure import NO_THRESHOLD, source_of
from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.runners import ShippedRunner
from nightowl.evaluation.truth import Truth
from nightowl.evaluation.truth_table import read_truth
from nightowl.export.on_test import operating_checks, precision_checks
from nightowl.export.parity import ParityCheck
from nightowl.export.whole_path import NUM_PATH_IMAGES, compare_paths, path_checks, spread, thresholds_of
from nightowl.export_params import PrecisionLimits


@dataclass(frozen=True, eq=False)
class MeasuredImages:
    """The test images of a version, their labels, and the trained model's detections and figures on them."""

    sources: Sequence[Source]
    truth: Truth
    detections: Detections
    metrics: Metrics


def measured_images(bundle: Path, folder: Path) -> MeasuredImages:
    """Those of the version in `bundle`, read from the source `folder` and checked when they are.

    Raises:
        DataError: when the bundle does not hold what was measured.
    """
    detections = read_detections(bundle / "detections.parquet")
    known = {image.path: image for image in read_manifest(bundle / "inputs" / "manifest.jsonl").images}
    lacking = [name for name in detections.images if name not in known]
    if lacking:
        raise DataError(f"{bundle}: test image {lacking[0]} is not in its manifest")
    return MeasuredImages(
        sources=[source_of(known[name], folder) for name in detections.images],
        truth=read_truth(bundle / "truth.parquet"),
        detections=detections,
        metrics=Metrics.model_validate_json((bundle / "metrics.json").read_bytes()),
    )


def checks_on_test(images: MeasuredImages, runner: ShippedRunner, limits: PrecisionLimits) -> tuple[ParityCheck, ...]:
    """From file to box, AP and operating point, against the trained model.

    Raises:
        DataError: when an image is gone or has changed. StageFailed: when the engine says NaN.
    """
    card = runner.card
    found = detect(model_of(card.model, runner), images.sources, card.limits, "engine on test").detections
    point = card.operating
    subject = Subject("engine", card.model.weights_sha256, images.metrics.dataset_version, "test", 0.0)
    confusion = NO_THRESHOLD if point.overall is None else point.overall
    metrics = evaluate(
        images.truth, found, subject, max_detections=card.limits.max_detections, confusion_confidence=confusion
    ).metrics
    return (
        *_path_checks(images.detections, found, runner, limits),
        *precision_checks(images.metrics, metrics, limits),
        *operating_checks(images.truth, images.detections, found, (point, point), limits),
    )


def _path_checks(
    trained: Detections, found: Detections, runner: ShippedRunner, limits: PrecisionLimits
) -> tuple[ParityCheck, ...]:
    """On as many images as the ONNX was held to: of more, some box lies at the very limit of NMS."""
    inside = np.isin(trained.images, spread(trained.images, NUM_PATH_IMAGES))
    counts = thresholds_of(runner.card.operating, len(runner.card.model.classes))
    return path_checks(compare_paths(trained.of_images(inside), found.of_images(inside), counts, counts), limits)
