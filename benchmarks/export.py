"""How far FP32, FP16 and INT8 lie from the trained model, how long parity takes, and how fast each artefact is.

`python -m benchmarks.export ROOT DETECTOR`: ROOT is a checkout in which the stages up to evaluate have run, by `dvc repro`, or
were checked out. Each precision is made and held as the stage export does it, with NMS outside and inside the file; INT8 also
with nothing clipped, with asymmetric activations, which TensorRT does not take, with its head quantised, and calibrated on few
images. Then .pt, ONNX and OpenVINO in all precisions are timed in turns on one core. Prints the figures of export.md; with
`--speed` those of the last part alone.
"""

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from nightowl.evaluation.openvino import OpenVinoRunner
from nightowl.evaluation.runners import OnnxRunner, Runner
from nightowl.export.attempt import hold
from nightowl.export.graph import last_module
from nightowl.export.make import calibration_inputs, card_of, make
from nightowl.export.onnx import write_model
from nightowl.export.openvino import convert
from nightowl.export.parity import Attempt
from nightowl.export.quantise import int8
from nightowl.export.speed import measure_speed
from nightowl.export.trained import Trained
from nightowl.export_params import ExportParams, Precision
from nightowl.params import load_params
from nightowl.settings import load_settings
from nightowl.stages.export import what_was_trained
from nightowl.stages.workspace import Workspace

PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "int8")


def main(root: Path, detector: str, speed_alone: bool = False) -> None:
    params = load_params(root, detector)
    started = time.perf_counter()
    trained = what_was_trained(params, Workspace(root, detector, load_settings(root)))
    print(f"{detector}: mAP50-95 of the .pt {trained.metrics.map50_95:.4f} on {trained.metrics.num_images} test images")
    print(f"before the first precision: {time.perf_counter() - started:.1f} s\n")
    with TemporaryDirectory(prefix="nightowl-") as scratch:
        if not speed_alone:
            _differences(trained, params.export, Path(scratch) / "model.onnx")
        _times(trained, params.export, Path(scratch))


def _differences(trained: Trained, params: ExportParams, path: Path) -> None:
    for inside in (False, True):
        export = params.model_copy(update={"nms_in_graph": inside})
        for precision in PRECISIONS:
            started = time.perf_counter()
            make(precision, trained, export, path)
            made = time.perf_counter()
            attempt = hold(precision, trained, export, path).attempt
            _show(f"{precision}{', NMS inside' if inside else ''}", attempt)
            print(f"    made in {made - started:.1f} s, held in {time.perf_counter() - made:.1f} s")
    for name, model in _others(trained, params):
        write_model(model, card_of("int8", trained, params), path)
        _show(name, hold("int8", trained, params, path).attempt)


def _times(trained: Trained, export: ExportParams, scratch: Path) -> None:
    """In turns, call by call: what else the machine does falls on all alike."""
    runners: dict[str, Runner] = {".pt": trained.runner}
    for precision in PRECISIONS:
        onnx_path, xml = scratch / f"{precision}.onnx", scratch / f"{precision}.xml"
        make(precision, trained, export, onnx_path)
        convert(onnx_path, xml)
        runners[f"onnx {precision}"] = OnnxRunner(onnx_path, export.threads)
        runners[f"openvino {precision}"] = OpenVinoRunner(xml, export.threads)
    speed = measure_speed({name: (runner, trained.inputs) for name, runner in runners.items()}, export.threads)
    print(f"\n{speed.cpu}, {speed.threads} thread(s); milliseconds a call")
    slow = speed.of(".pt")
    assert slow is not None
    for artefact in speed.artefacts:
        for timing in artefact.timings:
            p50, p95, p99 = (1000 * each for each in (timing.p50_seconds, timing.p95_seconds, timing.p99_seconds))
            times = slow.at(timing.batch).p50_seconds / timing.p50_seconds
            print(
                f"{artefact.name}, batch {timing.batch}: p50 {p50:.2f}, p95 {p95:.2f}, p99 {p99:.2f}, "
                f"{timing.images_per_second:.0f} images/s, {times:.2f} times the .pt, {timing.num_calls} calls"
            )


def _others(trained: Trained, export: ExportParams) -> Iterator[tuple[str, onnx.ModelProto]]:
    head = [last_module(trained.graph.graph)]
    few = export.model_copy(update={"calibration_images": 8})
    graph, images, percent = trained.graph, partial(calibration_inputs, trained), export.calibration_percent
    yield "int8, nothing clipped", int8(graph, images(export), head, 100)
    yield "int8, asymmetric", int8(graph, images(export), head, percent, symmetric=False)
    yield "int8, calibrated on 8 images", int8(graph, images(few), head, percent)
    yield "int8, its head quantised", int8(graph, images(export), [], percent)


def _show(name: str, attempt: Attempt) -> None:
    assert attempt.num_bytes is not None, "it was made"
    print(f"{name}: {'passes' if attempt.passed else 'refused'}, {attempt.num_bytes / 1e6:.1f} MB")
    for check in attempt.checks[1:]:
        figure = "unknown" if check.figure is None else f"{check.figure:.5g}"
        print(f"    {check.rule}: {figure}{'' if check.fault is None else f' ({check.fault})'}")
    if attempt.drift is not None:
        print(f"    drifts in {attempt.drift.module}: {attempt.drift.tensor}, {attempt.drift.share}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], "--speed" in sys.argv[3:])
