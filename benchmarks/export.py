"""How far FP32, FP16 and INT8 lie from the trained model, and how long parity takes.

`python -m benchmarks.export ROOT DETECTOR`: ROOT is a checkout in which the stages up to evaluate have run, as a night leaves
it. Each precision is made and held as the stage export does it, with NMS outside and inside the file; INT8 also with asymmetric
activations, which TensorRT does not take, and with its head quantised. Prints the figures of export.md.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from nightowl.export.attempt import hold
from nightowl.export.graph import last_module
from nightowl.export.make import calibration_inputs, card_of, make
from nightowl.export.onnx import write_model
from nightowl.export.parity import Attempt
from nightowl.export.quantise import int8
from nightowl.export.trained import Trained
from nightowl.export_params import ExportParams, Precision
from nightowl.params import load_params
from nightowl.settings import load_settings
from nightowl.stages.export import what_was_trained
from nightowl.stages.workspace import Workspace

PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "int8")


def main(root: Path, detector: str) -> None:
    params = load_params(root, detector)
    started = time.perf_counter()
    trained = what_was_trained(params, Workspace(root, detector, load_settings(root)))
    print(f"{detector}: mAP50-95 of the .pt {trained.metrics.map50_95:.4f} on {trained.metrics.num_images} test images")
    print(f"before the first precision: {time.perf_counter() - started:.1f} s\n")
    with TemporaryDirectory(prefix="nightowl-") as scratch:
        path = Path(scratch) / "model.onnx"
        for inside in (False, True):
            export = params.export.model_copy(update={"nms_in_graph": inside})
            for precision in PRECISIONS:
                started = time.perf_counter()
                make(precision, trained, export, path)
                made = time.perf_counter()
                attempt = hold(precision, trained, export, path).attempt
                _show(f"{precision}{', NMS inside' if inside else ''}", attempt)
                print(f"    made in {made - started:.1f} s, held in {time.perf_counter() - made:.1f} s")
        for name, model in _others(trained, params.export):
            write_model(model, card_of("int8", trained, params.export), path)
            _show(name, hold("int8", trained, params.export, path).attempt)


def _others(trained: Trained, export: ExportParams) -> Iterator[tuple[str, onnx.ModelProto]]:
    head = [last_module(trained.graph.graph)]
    few = export.model_copy(update={"calibration_images": 8})
    yield "int8, asymmetric", int8(trained.graph, calibration_inputs(trained, export), head, symmetric=False)
    yield "int8, calibrated on 8 images", int8(trained.graph, calibration_inputs(trained, few), head)
    yield "int8, its head quantised", int8(trained.graph, calibration_inputs(trained, export), [])


def _show(name: str, attempt: Attempt) -> None:
    assert attempt.num_bytes is not None, "it was made"
    print(f"{name}: {'passes' if attempt.passed else 'refused'}, {attempt.num_bytes / 1e6:.1f} MB")
    for check in attempt.checks[1:]:
        figure = "unknown" if check.figure is None else f"{check.figure:.5g}"
        print(f"    {check.rule}: {figure}{'' if check.fault is None else f' ({check.fault})'}")
    if attempt.drift is not None:
        print(f"    drifts in {attempt.drift.module}: {attempt.drift.tensor}, {attempt.drift.share}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
