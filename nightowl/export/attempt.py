"""One precision, made and held against the trained model on the file itself: tensors, whole path, AP, operating point."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray

from nightowl.data.manifest import Image, Manifest
from nightowl.errors import WeightsError
from nightowl.evaluation.card import ModelCard
from nightowl.evaluation.detect import Detected, Source, model_of, views_of
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.evaluate import Subject
from nightowl.evaluation.measure import detect_split, measure, source_of
from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.operating import ClassThreshold, OperatingPoint
from nightowl.evaluation.runners import OnnxRunner, Runner, ShippedRunner
from nightowl.evaluation.truth import truth_of
from nightowl.export.calibration import choose
from nightowl.export.drift import first_drift, first_drift_from_torch
from nightowl.export.fp16 import range_check, rounded_check, rounded_set
from nightowl.export.graph import GraphRunner, last_module
from nightowl.export.half import half, rounding
from nightowl.export.nms import before_nms, with_nms
from nightowl.export.on_test import operating_checks, precision_checks
from nightowl.export.onnx import write_model
from nightowl.export.parity import Attempt, Drift, ParityCheck, check, measured, refusals
from nightowl.export.quantise import int8
from nightowl.export.tensors import largest, tensor_gap
from nightowl.export.whole_path import PathGap, compare_paths, look_at_all, path_checks
from nightowl.export_params import ExportParams, Precision
from nightowl.files import sha256_file

if TYPE_CHECKING:
    import torch

NO_THRESHOLD = 0.25  # for a model without an operating point
# The share of a tensor's signal from which it has drifted: an honest yolo11n reaches 0.004 in FP16 and 0.10 in INT8.
DRIFT = {"fp32": 0.001, "fp16": 0.02, "int8": 0.2}


@dataclass(frozen=True, eq=False)
class Trained:
    """The trained model and what it says, measured once: its FP32 `graph`, raw or end-to-end; its metrics and detections on
    the test images of `dataset`, which lie in `folder`; inputs (N, 3, S, S) to compare tensors on; and detections made here
    on `sources`, to compare the whole path on."""

    module: "torch.nn.Module"
    runner: Runner
    card: ModelCard
    graph: onnx.ModelProto
    dataset: Manifest
    folder: Path
    metrics: Metrics
    detections: Detections
    inputs: NDArray[np.float32]
    sources: Sequence[Source]
    seen: Detections


class Tried(NamedTuple):
    """An attempt, and what its file finds on test (None: it could not be measured)."""

    attempt: Attempt
    detections: Detections | None


def calibration_images(trained: Trained, export: ExportParams) -> tuple[Image, ...]:
    return choose(trained.dataset.of("train"), export.calibration_images)


def make(precision: Precision, trained: Trained, export: ExportParams, path: Path) -> None:
    """Write the model in `precision` to `path`, with its card. Raises StageFailed when INT8 has no image to calibrate on."""
    model = trained.graph
    if precision == "fp16":
        model = half(model)
    if precision == "int8":
        model = int8(model, calibration_inputs(trained, export), [last_module(model.graph)])
    if _thins(trained, export):
        model = with_nms(model, trained.card.limits)
    write_model(model, card_of(precision, trained, export), path)


def card_of(precision: Precision, trained: Trained, export: ExportParams) -> ModelCard:
    """The card of the file that ships in `precision`."""
    changed: dict[str, object] = {"precision": precision}
    if _thins(trained, export):
        changed |= {"head": "end2end", "nms_in_graph": True}
    return trained.card.model_copy(update={"model": trained.card.model.model_copy(update=changed)})


def hold(
    precision: Precision,
    trained: Trained,
    export: ExportParams,
    path: Path,
    open_file: Callable[[Path], ShippedRunner] = OnnxRunner,
) -> Tried:
    """The file at `path` against the trained model. A file that does not open or run, or says NaN, has failed; nothing is
    raised for it. What can only be asked of a graph is asked of an ONNX alone."""
    is_graph = path.suffix == ".onnx"
    try:
        runner = open_file(path)
    except WeightsError as error:
        return Tried(_attempt(precision, path, (check("the file opens", None, None, str(error)),), None), None)
    limits = export.limits_of(precision)
    found, on_test = _on_test(precision, trained, export, runner)
    checks = (
        _card_check(runner.card, card_of(precision, trained, export)),
        *measured("tensors", lambda: _tensor_checks(precision, trained, export, runner, path)),
        *measured("from file to box", lambda: path_checks(_path_gap(trained, runner), limits)),
        *on_test,
        *(measured("FP16", lambda: _fp16_checks(trained, limits.max_map50_95_gap)) if precision == "fp16" and is_graph else ()),
    )
    drift = None if all(each.passed for each in checks) or not is_graph else _drift(precision, trained, path)
    return Tried(_attempt(precision, path, checks, drift), found)


def _attempt(precision: Precision, path: Path, checks: tuple[ParityCheck, ...], drift: Drift | None) -> Attempt:
    return Attempt(
        precision=precision,
        passed=all(each.passed for each in checks),
        checks=checks,
        refused=refusals(checks, drift),
        drift=drift,
        onnx_sha256=sha256_file(path),
        num_bytes=path.stat().st_size,
    )


def _card_check(found: ModelCard, expected: ModelCard) -> ParityCheck:
    pairs = [(part, getattr(found, part), getattr(expected, part)) for part in ModelCard.model_fields]
    differing = [
        f"{part}.{name}"
        for part, one, other in pairs
        for name in type(other).model_fields
        if getattr(one, name) != getattr(other, name)
    ]
    return check("entries of the file's card that are not the model's", len(differing), 0, ", ".join(differing) or None)


def _tensor_checks(
    precision: Precision, trained: Trained, export: ExportParams, runner: ShippedRunner, path: Path
) -> Sequence[ParityCheck]:
    """The network's outputs; in FP16 the file's on this CPU, and those with every result rounded.

    Of a file that thins boxes itself and is no ONNX nothing is seen before the thinning: the whole path speaks for it.
    """
    card, limits, is_graph = trained.card, export.limits_of(precision), path.suffix == ".onnx"
    if runner.card.model.nms_in_graph and not is_graph:
        return ()
    runners: list[Runner] = [GraphRunner(_network(path)) if runner.card.model.nms_in_graph else runner]
    if precision == "fp16" and is_graph:
        runners.append(GraphRunner(rounding(trained.graph)))
    floor = card.limits.confidence_floor
    gap = largest(tensor_gap(trained.runner, each, trained.inputs, card.model.head, floor) for each in runners)
    return (
        check("largest score gap", gap.score, limits.max_score_gap),
        check("largest box gap, px", gap.box_px, limits.max_box_gap_px),
    )


def _path_gap(trained: Trained, runner: ShippedRunner) -> PathGap:
    """Both sides from image files to boxes, each with the thresholds that are stored with it; classes by name."""
    classes = trained.card.model.classes
    shipped = look_at_all(runner, trained.sources).with_classes(classes)
    points = trained.card.operating, _among(runner.card.operating, classes)
    ours, theirs = (_thresholds(point, len(classes)) for point in points)
    return compare_paths(trained.seen, shipped, ours, theirs)


def _on_test(
    precision: Precision, trained: Trained, export: ExportParams, runner: ShippedRunner
) -> tuple[Detections | None, tuple[ParityCheck, ...]]:
    """What the file finds on test by its own card, and AP and operating point of that."""
    found, limits = list[Detections](), export.limits_of(precision)

    def work() -> Sequence[ParityCheck]:
        model = model_of(runner.card.model, runner)
        detected = detect_split(model, trained.dataset, "test", trained.folder, runner.card.limits)
        found.append(detected.detections.with_classes(trained.dataset.classes))
        metrics = _measure(trained, trained.dataset, found[0])
        truth = truth_of(trained.dataset.classes, trained.dataset.of("test"))
        points = trained.card.operating, _among(runner.card.operating, trained.dataset.classes)
        return (
            *precision_checks(trained.metrics, metrics, limits),
            *operating_checks(truth, trained.detections, found[0], points, limits),
        )

    checks = measured("on test", work)
    return (found[0] if found else None), checks


def _fp16_checks(trained: Trained, limit: float) -> Sequence[ParityCheck]:
    """What running the file on a CPU does not show."""
    part = rounded_set(trained.dataset)
    model = model_of(trained.card.model, GraphRunner(rounding(trained.graph)))
    inside = np.isin(trained.detections.images, [image.path for image in part.images])
    ours = _measure(trained, part, trained.detections.of_images(inside))
    in_range = range_check(trained.graph, trained.inputs)

    def rounded() -> Sequence[ParityCheck]:
        found = detect_split(model, part, "test", trained.folder, trained.card.limits)
        return (rounded_check(ours, _measure(trained, part, found.detections), limit),)

    return (in_range, *measured("mAP50-95 with every operator rounded to FP16", rounded))


def _measure(trained: Trained, dataset: Manifest, detections: Detections) -> Metrics:
    subject = Subject("export", trained.card.model.weights_sha256, dataset.version(), "test", 0.0)
    overall = trained.card.operating.overall
    return measure(dataset, dataset.classes, Detected(detections, 0.0), subject, trained.card.limits, overall).metrics


def _drift(precision: Precision, trained: Trained, path: Path) -> Drift | None:
    """Where the graph begins to differ; None where it does not, as when only its card or its thinning is wrong."""
    limit = DRIFT[precision]
    if precision == "fp16":
        return first_drift(trained.graph, rounding(trained.graph), trained.inputs, limit)
    shipped = _network(path)
    if precision == "int8":
        return first_drift(trained.graph, shipped, trained.inputs, limit)
    return first_drift_from_torch(trained.module, shipped, trained.inputs, limit)


def _network(path: Path) -> onnx.ModelProto:
    """The file's graph, without a thinning of its own."""
    model = onnx.load(path)
    return before_nms(model) if any(node.op_type == "NonMaxSuppression" for node in model.graph.node) else model


def calibration_inputs(trained: Trained, export: ExportParams) -> Iterator[NDArray[np.float32]]:
    """What the network sees of each calibration image: of a tiled one a single tile, which one by its content."""
    model = model_of(trained.card.model, trained.runner)
    for image in calibration_images(trained, export):
        views = views_of(source_of(image, trained.folder).load(), model)
        yield views[int(image.sha256, 16) % len(views)][0]


def _thins(trained: Trained, export: ExportParams) -> bool:
    return export.nms_in_graph and trained.card.model.head == "raw"


def _among(point: OperatingPoint, classes: tuple[str, ...]) -> OperatingPoint:
    """The point for `classes`, by name; a class that it does not know has the overall threshold."""
    own = {each.name: each for each in point.classes}
    known = [own.get(name, ClassThreshold(name=name, confidence=None)) for name in classes]
    return point.model_copy(update={"classes": tuple(known)})


def _thresholds(point: OperatingPoint, num_classes: int) -> NDArray[np.float32]:
    thresholds = point.thresholds()
    return np.full(num_classes, NO_THRESHOLD, np.float32) if thresholds is None else thresholds
