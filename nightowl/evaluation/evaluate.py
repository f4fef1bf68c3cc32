"""The evaluator: truth and detections in, figures and curves out. The same code measures candidate, champion and export.

What cannot be measured is refused or None, never zero: no images or no truth raise, a class without truth has no figures;
no detections where there is truth are a measured zero.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.average_precision import RECALL_LIMITS, AveragePrecision, average_precision
from nightowl.evaluation.check import check_measurable
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.matches import Matches, precompute_matches
from nightowl.evaluation.metrics import AverageRecall, ClassMetrics, Curves, Metrics, SizeMetrics
from nightowl.evaluation.operating import BestF1, best_f1
from nightowl.evaluation.sizes import AREAS, SIZES, Size, within
from nightowl.evaluation.slice_metrics import slice_metrics
from nightowl.evaluation.slices import Slice
from nightowl.evaluation.truth import Truth, confusion


class Subject(NamedTuple):
    """What is measured on what: the words that go into the record."""

    model: str
    weights_sha256: str
    dataset_version: str
    split: str
    seconds_per_image: float


class Measured(NamedTuple):
    metrics: Metrics
    curves: Curves


class _SizeTable(NamedTuple):
    """Figures (C,) of the objects of one size; `num_truth` (C,) of them."""

    size: Size
    num_truth: NDArray[np.int64]
    ap50: NDArray[np.float64]
    ap50_95: NDArray[np.float64]
    ar100: NDArray[np.float64]


def evaluate(
    truth: Truth,
    detections: Detections,
    subject: Subject,
    *,
    max_detections: int,
    confusion_confidence: float,
    truth_needed: bool = True,
    slices: Sequence[Slice] = (),
) -> Measured:
    """Figures and curves of detections against truth with the same images and classes; also of each of `slices`.

    Without `truth_needed`, as for the few classes that a champion shares, no truth gives figures that are all None.

    Raises:
        DataError: when there are no images, or (where needed) no truth in them.
        StageFailed: when a score or a box is NaN or infinite; the image is named.
    """
    check_measurable(truth, detections, subject.split, truth_needed)
    with ThreadPoolExecutor(1) as beside:  # faster-coco-eval lets others run while it matches
        scoring = beside.submit(average_precision, truth, detections, max_detections)
        matches = precompute_matches(truth, detections, max_detections)
        points, of_slices = _points(matches), slice_metrics(matches, slices)
        confused = confusion(truth, detections, confusion_confidence)
        precision = scoring.result()
    tables = _size_tables(truth, precision)
    recalls = [precision.recall_per_class(limit) for limit in RECALL_LIMITS]
    metrics = Metrics(
        model=subject.model,
        weights_sha256=subject.weights_sha256,
        dataset_version=subject.dataset_version,
        split=subject.split,
        num_images=len(truth.images),
        num_truth=int(truth.counts().sum()),
        map50=_mean(precision.per_class(0.5)),
        map75=_mean(precision.per_class(0.75)),
        map50_95=_mean(precision.per_class()),
        classes=_classes(truth, precision, points, tables, recalls),
        seconds_per_image=subject.seconds_per_image,
        ar=_recall(recalls, None),
        sizes=_sizes(tables, None),
        slices=of_slices,
    )
    return Measured(metrics, _curves(truth, precision, confused, confusion_confidence))


def _points(matches: Matches) -> list[BestF1 | None]:
    """The best F1 of each class at IoU 0.5, None without truth."""
    points = []
    for one in matches.per_class:
        counted, num_truth = ~one.ignored[0], int(one.num_truth.sum())
        points.append(best_f1(one.score[counted], one.found[0][counted], num_truth) if num_truth else None)
    return points


def _classes(
    truth: Truth,
    precision: AveragePrecision,
    points: Sequence[BestF1 | None],
    tables: Sequence[_SizeTable],
    recalls: Sequence[NDArray[np.float64]],
) -> tuple[ClassMetrics, ...]:
    ap50, ap75, ap50_95, counts = precision.per_class(0.5), precision.per_class(0.75), precision.per_class(), truth.counts()
    return tuple(
        ClassMetrics(
            name=name,
            num_truth=int(counts[i]),
            ap50=_known(ap50[i]),
            ap50_95=_known(ap50_95[i]),
            precision=point.precision if point else None,
            recall=point.recall if point else None,
            best_f1_confidence=point.confidence if point else None,
            ap75=_known(ap75[i]),
            ar=_recall(recalls, i),
            sizes=_sizes(tables, i),
        )
        for i, (name, point) in enumerate(zip(truth.classes, points, strict=True))
    )


def _size_tables(truth: Truth, precision: AveragePrecision) -> list[_SizeTable]:
    tables = []
    for size in SIZES:
        own = truth.class_id[~truth.ignore & within(truth.boxes_xyxy, AREAS[size])]
        counts = np.bincount(own, minlength=len(truth.classes))
        average = precision.per_class(0.5, size), precision.per_class(None, size), precision.recall_per_class(100, size)
        tables.append(_SizeTable(size, counts, *average))
    return tables


def _recall(recalls: Sequence[NDArray[np.float64]], class_id: int | None) -> AverageRecall:
    """Average recall of one class, or the mean over those that have truth; `recalls` (C,) at each of the limits."""
    ar1, ar10, ar100 = (_figure(each, class_id) for each in recalls)
    return AverageRecall(ar1=ar1, ar10=ar10, ar100=ar100)


def _sizes(tables: Sequence[_SizeTable], class_id: int | None) -> tuple[SizeMetrics, ...]:
    """Figures by size of one class, or their means over those that have truth of the size."""
    return tuple(
        SizeMetrics(
            size=table.size,
            num_truth=int(table.num_truth.sum() if class_id is None else table.num_truth[class_id]),
            ap50=_figure(table.ap50, class_id),
            ap50_95=_figure(table.ap50_95, class_id),
            ar100=_figure(table.ar100, class_id),
        )
        for table in tables
    )


def _figure(per_class: NDArray[np.float64], class_id: int | None) -> float | None:
    return _mean(per_class) if class_id is None else _known(per_class[class_id])


def _curves(truth: Truth, precision: AveragePrecision, confused: NDArray[np.int64], confidence: float) -> Curves:
    at_50 = precision.precision[0, :, :, 0].T
    return Curves(
        classes=truth.classes,
        recall=tuple(precision.recall_points.tolist()),
        precision=tuple(None if np.isnan(row).any() else tuple(row.tolist()) for row in at_50),
        confusion=tuple(tuple(row) for row in confused.tolist()),
        confusion_confidence=confidence,
    )


def _known(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(min(max(value, 0.0), 1.0))


def _mean(per_class: NDArray[np.float64]) -> float | None:
    known = per_class[~np.isnan(per_class)]
    return _known(known.mean()) if len(known) else None
