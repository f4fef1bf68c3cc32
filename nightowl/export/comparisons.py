"""What a file says against what the trained model says, step by step: tensors, whole path, AP, operating point, FP16, drift."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx

from nightowl.evaluation.detect import model_of
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.measure import detect_split
from nightowl.evaluation.operating import ClassThreshold, OperatingPoint
from nightowl.evaluation.runners import Runner, ShippedRunner
from nightowl.evaluation.truth import truth_of
from nightowl.export.drift import first_drift, first_drift_from_torch
from nightowl.export.fp16 import range_check, rounded_check, rounded_set
from nightowl.export.graph import GraphRunner
from nightowl.export.half import rounding
from nightowl.export.inside import inside_onnx
from nightowl.export.nms import before_nms
from nightowl.export.on_test import operating_checks, precision_checks
from nightowl.export.openvino import inside_openvino
from nightowl.export.parity import Drift, ParityCheck, check, measured
from nightowl.export.tensors import largest, tensor_gap
from nightowl.export.trained import Trained, measure_again
from nightowl.export.whole_path import PathGap, compare_paths, look_at_all, thresholds_of
from nightowl.export_params import ExportParams, Precision

# The share of a tensor's signal from which it has drifted: an honest yolo11n reaches 0.004 in FP16 and 0.10 in INT8.
DRIFT = {"fp32": 0.001, "fp16": 0.02, "int8": 0.2}


def tensor_checks(
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


def path_gap(trained: Trained, runner: ShippedRunner) -> PathGap:
    """Both sides from image files to boxes, each with the thresholds that are stored with it; classes by name."""
    classes = trained.card.model.classes
    shipped = look_at_all(runner, trained.sources).with_classes(classes)
    points = trained.card.operating, _among(runner.card.operating, classes)
    ours, theirs = (thresholds_of(point, len(classes)) for point in points)
    return compare_paths(trained.seen, shipped, ours, theirs)


def on_test(
    precision: Precision, trained: Trained, export: ExportParams, runner: ShippedRunner
) -> tuple[Detections | None, tuple[ParityCheck, ...]]:
    """What the file finds on test by its own card, and AP and operating point of that."""
    found, limits = list[Detections](), export.limits_of(precision)

    def work() -> Sequence[ParityCheck]:
        model = model_of(runner.card.model, runner)
        detected = detect_split(model, trained.dataset, "test", trained.folder, runner.card.limits)
        found.append(detected.detections.with_classes(trained.dataset.classes))
        metrics = measure_again(trained, trained.dataset, found[0])
        truth = truth_of(trained.dataset.classes, trained.dataset.of("test"))
        points = trained.card.operating, _among(runner.card.operating, trained.dataset.classes)
        return (
            *precision_checks(trained.metrics, metrics, limits),
            *operating_checks(truth, trained.detections, found[0], points, limits),
        )

    checks = measured("on test", work)
    return (found[0] if found else None), checks


def fp16_checks(trained: Trained, limit: float) -> Sequence[ParityCheck]:
    """What running the file on a CPU does not show."""
    part = rounded_set(trained.dataset)
    model = model_of(trained.card.model, GraphRunner(rounding(trained.graph)))
    inside = np.isin(trained.detections.images, [image.path for image in part.images])
    ours = measure_again(trained, part, trained.detections.of_images(inside))
    in_range = range_check(trained.graph, trained.inputs)

    def rounded() -> Sequence[ParityCheck]:
        found = detect_split(model, part, "test", trained.folder, trained.card.limits)
        return (rounded_check(ours, measure_again(trained, part, found.detections), limit),)

    return (in_range, *measured("mAP50-95 with every operator rounded to FP16", rounded))


def drift_of(precision: Precision, trained: Trained, path: Path) -> Drift | None:
    """Where the file begins to differ; None where it does not, as when only its card or its thinning is wrong.

    Raises:
        StageFailed: when OpenVINO cannot say what is inside the file.
    """
    limit, inputs, graph = DRIFT[precision], trained.inputs, trained.graph
    if path.suffix == ".xml":
        inside = inside_openvino(path)
        found = first_drift(graph, inside, inputs, limit)
        return found or first_drift_from_torch(trained.module, graph, inside, inputs, limit)
    if precision == "fp16":
        return first_drift(graph, inside_onnx(rounding(graph)), inputs, limit)
    shipped = _network(path)
    if precision == "int8":
        return first_drift(graph, inside_onnx(shipped), inputs, limit)
    return first_drift_from_torch(trained.module, shipped, inside_onnx(shipped), inputs, limit)


def _network(path: Path) -> onnx.ModelProto:
    """The file's graph, without a thinning of its own."""
    model = onnx.load(path)
    return before_nms(model) if any(node.op_type == "NonMaxSuppression" for node in model.graph.node) else model


def _among(point: OperatingPoint, classes: tuple[str, ...]) -> OperatingPoint:
    """The point for `classes`, by name; a class that it does not know has the overall threshold."""
    own = {each.name: each for each in point.classes}
    known = [own.get(name, ClassThreshold(name=name, confidence=None)) for name in classes]
    return point.model_copy(update={"classes": tuple(known)})
