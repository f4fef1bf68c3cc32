"""Stage export: the artefact that ships, and the proof that it says what the trained model says.

Each format is measured on test by the evaluator that measured the candidate. Whether it may be published is in `parity.json`;
a difference does not fail the stage. What running it takes, beside the champion's ONNX, is in `cost.json`, for the gate.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nightowl.data.blobs import BlobStore
from nightowl.data.manifest import Manifest, read_manifest
from nightowl.data.source import source_folder
from nightowl.evaluation.card import ModelCard
from nightowl.evaluation.champion import read_champion
from nightowl.evaluation.cost import Cost
from nightowl.evaluation.detect import Detected, Source, model_of
from nightowl.evaluation.detections import write_detections
from nightowl.evaluation.evaluate import Subject
from nightowl.evaluation.measure import detect_split, measure, sources_of
from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.model_file import ModelRecord
from nightowl.evaluation.openvino import OpenVinoRunner
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.preprocess import letterbox
from nightowl.evaluation.runners import OnnxRunner, Runner, ShippedRunner, TorchRunner
from nightowl.export.onnx import export_onnx
from nightowl.export.openvino import convert
from nightowl.export.parity import Parity, ParityCheck, judge, of_format, tensor_checks
from nightowl.export.speed import Speed, measure_speed
from nightowl.files import sha256_file, write_record
from nightowl.params import Params
from nightowl.settings import home_of
from nightowl.stages.frame import main
from nightowl.stages.workspace import Workspace
from nightowl.training.yolo import load_torch_model

NUM_TENSOR_IMAGES = 4
RUNNERS: Mapping[str, Callable[..., ShippedRunner]] = {"onnx": OnnxRunner, "openvino": OpenVinoRunner}


def run(params: Params, workspace: Workspace, out: Path) -> None:
    """Write model.onnx and the other formats that params ask for, what the ONNX finds on test, parity.json, speed.json and
    cost.json."""
    record = ModelRecord.model_validate_json(workspace.model.read_bytes())
    operating = OperatingPoint.model_validate_json(workspace.operating.read_bytes())
    card = ModelCard(model=record, operating=operating, limits=params.evaluate)
    module = load_torch_model(workspace.weights, record.weights_sha256)
    paths = {"onnx": out / workspace.onnx.name}
    export_onnx(module, card, params.export.opset, paths["onnx"])
    if "openvino" in params.export.formats:
        paths["openvino"] = out / workspace.openvino.name
        convert(paths["onnx"], paths["openvino"])
    trained, dataset = TorchRunner(module), read_manifest(workspace.dataset)
    checks: tuple[ParityCheck, ...] = ()
    for name, path in paths.items():
        exported = RUNNERS[name](path)
        found = _detect(params, workspace, dataset, exported)
        judged = compare(params, workspace, dataset, trained, exported, found)
        checks += judged if name == "onnx" else of_format(name, judged)
        if name == "onnx":
            write_detections(out / workspace.shipped_detections.name, found.detections)
    write_record(out / workspace.parity.name, _parity(record, checks, dataset, paths))
    speed = _speed(params, workspace, dataset, trained, record.image_size, paths)
    write_record(out / workspace.speed.name, speed)
    write_record(out / workspace.cost.name, cost_of(speed, paths["onnx"].stat().st_size))


def compare(
    params: Params, workspace: Workspace, dataset: Manifest, trained: TorchRunner, exported: ShippedRunner, found: Detected
) -> tuple[ParityCheck, ...]:
    """An exported model against the trained one, and what it `found` against the candidate's figures on test."""
    record = exported.card.model
    images = _tensors(_test(workspace, dataset)[:NUM_TENSOR_IMAGES], record.image_size)
    gap = tensor_checks(trained, exported, images, record.head, params.evaluate.confidence_floor)
    candidate = Metrics.model_validate_json(workspace.metrics("candidate").read_bytes())
    return judge(gap, candidate, _measure(params, dataset, found, exported), params.export)


def cost_of(speed: Speed, model_bytes: int) -> Cost:
    """What the gate judges: the ONNX at batch 1, and the champion's beside it."""
    onnx, champion = speed.of("onnx"), speed.of("champion")
    assert onnx is not None, "the ONNX is always timed"
    return Cost(
        seconds_per_image=onnx.at(1).p50_seconds,
        p99_seconds_per_image=onnx.at(1).p99_seconds,
        champion_seconds_per_image=champion.at(1).p50_seconds if champion else None,
        model_bytes=model_bytes,
    )


def _parity(record: ModelRecord, checks: tuple[ParityCheck, ...], dataset: Manifest, paths: Mapping[str, Path]) -> Parity:
    others = [path for name, path in paths.items() if name != "onnx"]
    others += [path.with_suffix(".bin") for path in others]
    return Parity(
        passed=all(check.passed for check in checks),
        checks=checks,
        num_images=len(dataset.of("test")),
        weights_sha256=record.weights_sha256,
        onnx_sha256=sha256_file(paths["onnx"]),
        other_files={path.name: sha256_file(path) for path in others},
    )


def _speed(
    params: Params, workspace: Workspace, dataset: Manifest, trained: TorchRunner, size: int, paths: Mapping[str, Path]
) -> Speed:
    """Every artefact, and the champion's ONNX at its own size, timed in turn."""
    threads = params.export.threads
    sources = _test(workspace, dataset)[:NUM_TENSOR_IMAGES]
    images = _tensors(sources, size)
    subjects: dict[str, tuple[Runner, NDArray[np.float32]]] = {".pt": (trained, images)}
    subjects |= {name: (RUNNERS[name](path, threads), images) for name, path in paths.items()}
    champion = read_champion(workspace.champion)
    if champion is not None:
        blobs = BlobStore(home_of(workspace.settings) / "blobs")
        runner = OnnxRunner(blobs.verified_path(champion.onnx_sha256, f"the ONNX of champion v{champion.version}"), threads)
        subjects["champion"] = runner, _tensors(sources, runner.card.model.image_size)
    return measure_speed(subjects, threads)


def _test(workspace: Workspace, dataset: Manifest) -> list[Source]:
    return sources_of(dataset, "test", source_folder(workspace.settings, workspace.detector))


def _detect(params: Params, workspace: Workspace, dataset: Manifest, exported: ShippedRunner) -> Detected:
    folder = source_folder(workspace.settings, workspace.detector)
    return detect_split(model_of(exported.card.model, exported), dataset, "test", folder, params.evaluate)


def _measure(params: Params, dataset: Manifest, found: Detected, exported: ShippedRunner) -> Metrics:
    record = exported.card.model
    subject = Subject("export", record.weights_sha256, dataset.version(), "test", found.seconds_per_image)
    overall = exported.card.operating.overall
    return measure(dataset, dataset.classes, found, subject, params.evaluate, overall).metrics


def _tensors(sources: list[Source], size: int) -> NDArray[np.float32]:
    return np.stack([letterbox(source.load(), size)[0] for source in sources])


if __name__ == "__main__":
    main("export", run)
