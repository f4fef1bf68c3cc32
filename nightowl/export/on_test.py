"""What the file that ships finds on the test images, held against what the trained model found: AP, and the operating point."""

from collections.abc import Sequence

import numpy as np

from nightowl.evaluation.detections import Detections
from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.operating_figures import Figures, operating_figures
from nightowl.evaluation.truth import Truth
from nightowl.export.parity import ParityCheck, check
from nightowl.export_params import PrecisionLimits

_CONFIDENCE = 0.95  # of bounds that are not looked at here


def precision_checks(trained: Metrics, shipped: Metrics, limits: PrecisionLimits) -> tuple[ParityCheck, ...]:
    """mAP50-95, and the AP50-95 of the class that moved most. Better is a difference too: it is not the same model."""
    gaps = [(gap, name) for name, gap in _class_gaps(trained, shipped)]
    worst, name = max(gaps, default=(None, None), key=lambda each: each[0])
    fault = f"class {name}" if worst else None
    return (
        check("mAP50-95 gap on test", _gap(trained.map50_95, shipped.map50_95), limits.max_map50_95_gap),
        check("AP50-95 gap of a class on test", worst, limits.max_class_ap50_95_gap, fault),
    )


def operating_checks(
    truth: Truth,
    trained: Detections,
    shipped: Detections,
    stored: tuple[OperatingPoint, OperatingPoint],
    limits: PrecisionLimits,
) -> tuple[ParityCheck, ...]:
    """Misses and false positives of both on test, each at the thresholds `stored` with it (the trained model's, the file's).

    A model that found nothing right on val has no thresholds, and nothing to hold.
    """
    ours, theirs = (_figures(truth, *each) for each in zip((trained, shipped), stored, strict=True))
    if ours is None:
        return ()
    misses, false = _gaps(ours, theirs) if theirs else (None, None)
    fault = None if theirs else "the file has no thresholds"
    return (
        check("miss rate gap at the operating point", misses, limits.max_miss_rate_gap, fault),
        check("gap of false positives an image at the operating point", false, limits.max_fp_per_image_gap, fault),
    )


def _figures(truth: Truth, detections: Detections, point: OperatingPoint) -> Figures | None:
    alone = np.arange(len(truth.images))
    found = operating_figures(truth, detections, point, alone, _CONFIDENCE, num_resamples=1)
    return found.overall if found else None


def _gaps(ours: Figures, theirs: Figures) -> tuple[float | None, float | None]:
    return (
        _gap(ours.miss.value, theirs.miss.value),
        _gap(ours.false_positives.value, theirs.false_positives.value),
    )


def _class_gaps(trained: Metrics, shipped: Metrics) -> Sequence[tuple[str, float]]:
    """Of the classes that occur in test."""
    pairs = [(one.name, _gap(one.ap50_95, other.ap50_95)) for one, other in zip(trained.classes, shipped.classes, strict=True)]
    return [(name, gap) for name, gap in pairs if gap is not None]


def _gap(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else abs(ours - theirs)
