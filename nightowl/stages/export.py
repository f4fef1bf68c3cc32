"""Stage export: the artefact that ships, and the proof that it says what the trained model says.

The ONNX is measured on test by the evaluator that measured the candidate. Whether it may be published is in `parity.json`;
a difference does not fail the stage. What running it takes, beside the champion's ONNX, is in `cost.json`, for the gate.
"""

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
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.preprocess import letterbox
from nightowl.evaluation.runners import OnnxRunner, TorchRunner
from nightowl.export.onnx import export_onnx
from nightowl.export.parity import Parity, judge, seconds_per_image, tensor_checks
from nightowl.files import sha256_file, write_record
from nightowl.params import Params
from nightowl.settings import home_of
from nightowl.stages.frame import main
from nightowl.stages.workspace import Workspace
from nightowl.training.yolo import load_torch_model

NUM_TENSOR_IMAGES = 4


def run(params: Params, workspace: Workspace, out: Path) -> None:
    """Write model.onnx, what it finds on test, parity.json and cost.json."""
    record = ModelRecord.model_validate_json(workspace.model.read_bytes())
    operating = OperatingPoint.model_validate_json(workspace.operating.read_bytes())
    card = ModelCard(model=record, operating=operating, limits=params.evaluate)
    module = load_torch_model(workspace.weights, record.weights_sha256)
    path = out / workspace.onnx.name
    export_onnx(module, card, params.export.opset, path)
    exported = OnnxRunner(path)
    dataset = read_manifest(workspace.dataset)
    found = _detect(params, workspace, dataset, exported)
    write_detections(out / workspace.shipped_detections.name, found.detections)
    parity, cost = compare(params, workspace, dataset, TorchRunner(module), exported, found, path)
    write_record(out / workspace.parity.name, parity)
    write_record(out / workspace.cost.name, cost)


def compare(
    params: Params,
    workspace: Workspace,
    dataset: Manifest,
    trained: TorchRunner,
    exported: OnnxRunner,
    found: Detected,
    path: Path,
) -> tuple[Parity, Cost]:
    """The model exported to `path` against the trained one, and what it `found` against the candidate's figures on test; and
    what running it takes."""
    record = exported.card.model
    folder = source_folder(workspace.settings, workspace.detector)
    sources = sources_of(dataset, "test", folder)
    images = _tensors(sources[:NUM_TENSOR_IMAGES], record.image_size)
    gap = tensor_checks(trained, exported, images, record.head, params.evaluate.confidence_floor)
    candidate = Metrics.model_validate_json(workspace.metrics("candidate").read_bytes())
    checks = judge(gap, candidate, _measure(params, dataset, found, exported), params.export)
    champion = _champion(workspace, sources[:NUM_TENSOR_IMAGES])
    ours, onnx, *theirs = seconds_per_image([(trained, images), (exported, images), *champion])
    parity = Parity(
        passed=all(check.passed for check in checks),
        checks=checks,
        num_images=len(sources),
        weights_sha256=record.weights_sha256,
        onnx_sha256=sha256_file(path),
        torch_seconds_per_image=ours,
        onnx_seconds_per_image=onnx,
    )
    standing = theirs[0] if theirs else None
    return parity, Cost(seconds_per_image=onnx, champion_seconds_per_image=standing, model_bytes=path.stat().st_size)


def _champion(workspace: Workspace, sources: list[Source]) -> list[tuple[OnnxRunner, NDArray[np.float32]]]:
    """The champion's ONNX with the same images at its own size, to be timed beside the candidate's; none without a champion."""
    champion = read_champion(workspace.champion)
    if champion is None:
        return []
    blobs = BlobStore(home_of(workspace.settings) / "blobs")
    runner = OnnxRunner(blobs.verified_path(champion.onnx_sha256, f"the ONNX of champion v{champion.version}"))
    return [(runner, _tensors(sources, runner.card.model.image_size))]


def _detect(params: Params, workspace: Workspace, dataset: Manifest, exported: OnnxRunner) -> Detected:
    folder = source_folder(workspace.settings, workspace.detector)
    return detect_split(model_of(exported.card.model, exported), dataset, "test", folder, params.evaluate)


def _measure(params: Params, dataset: Manifest, found: Detected, exported: OnnxRunner) -> Metrics:
    record = exported.card.model
    subject = Subject("export", record.weights_sha256, dataset.version(), "test", found.seconds_per_image)
    overall = exported.card.operating.overall
    return measure(dataset, dataset.classes, found, subject, params.evaluate, overall).metrics


def _tensors(sources: list[Source], size: int) -> NDArray[np.float32]:
    return np.stack([letterbox(source.load(), size)[0] for source in sources])


if __name__ == "__main__":
    main("export", run)
