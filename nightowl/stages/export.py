"""Stage export: the artefact that ships, and the proof that it says what the trained model says.

The precisions of params are tried in order; the first that keeps its limits is `model.onnx`. Another format that keeps them in
none is left out, or, where params require it, refuses the version. `parity.json` says whether it may be published, with every
attempt and why it was refused; a difference does not fail the stage. What running it takes, beside the champion's ONNX, is in
`speed.json` and, for the gate, in `cost.json`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nightowl.data.blobs import BlobStore
from nightowl.data.manifest import read_manifest
from nightowl.data.source import source_folder
from nightowl.evaluation.card import ModelCard
from nightowl.evaluation.champion import read_champion
from nightowl.evaluation.cost import ArtefactCost, Cost
from nightowl.evaluation.detect import Source, detect, model_of
from nightowl.evaluation.detections import read_detections, write_detections
from nightowl.evaluation.measure import sources_of
from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.model_file import ModelRecord
from nightowl.evaluation.openvino import OpenVinoRunner
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.preprocess import letterbox
from nightowl.evaluation.runners import OnnxRunner, Runner, ShippedRunner, TorchRunner
from nightowl.evaluation.timings import Speed
from nightowl.export.formats import try_onnx, try_openvino
from nightowl.export.make import calibration_images
from nightowl.export.onnx import traced
from nightowl.export.parity import Attempt, CalibrationImage, FormatParity, Parity
from nightowl.export.speed import measure_speed
from nightowl.export.trained import Trained
from nightowl.export.whole_path import NUM_PATH_IMAGES, spread
from nightowl.export_params import ExportParams
from nightowl.files import write_record
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
    trained, onnx = what_was_trained(params, workspace), out / workspace.onnx.name
    tried = try_onnx(params.export, trained, onnx)
    attempts, found = [each.attempt for each in tried], tried[-1].detections
    if found is not None:
        write_detections(out / workspace.shipped_detections.name, found)
    others = list[FormatParity]()
    if "openvino" in params.export.formats:
        xml = out / workspace.openvino.name
        others.append(try_openvino(params.export, trained, onnx, attempts[-1].precision, xml))
    write_record(out / workspace.parity.name, _parity(params.export, trained, attempts, others))
    paths = {"onnx": onnx} | {each.name: out / workspace.openvino.name for each in others if each.shipped}
    speed = _speed(params, workspace, trained, paths)
    write_record(out / workspace.speed.name, speed)
    write_record(out / workspace.cost.name, cost_of(params.export, speed, paths))


def what_was_trained(params: Params, workspace: Workspace) -> Trained:
    """The trained model with all that the exports of it are held against."""
    model = ModelRecord.model_validate_json(workspace.model.read_bytes())
    operating = OperatingPoint.model_validate_json(workspace.operating.read_bytes())
    card = ModelCard(model=model, operating=operating, limits=params.evaluate)
    module = load_torch_model(workspace.weights, model.weights_sha256)
    runner, dataset = TorchRunner(module), read_manifest(workspace.dataset)
    folder = source_folder(workspace.settings, workspace.detector)
    sources = sources_of(dataset, "test", folder)
    path_sources = spread(sources, NUM_PATH_IMAGES)
    return Trained(
        module=module,
        runner=runner,
        card=card,
        graph=traced(module, model.image_size, params.export.opset),
        dataset=dataset,
        folder=folder,
        metrics=Metrics.model_validate_json(workspace.metrics("candidate").read_bytes()),
        detections=read_detections(workspace.detections("candidate")),
        inputs=_tensors(spread(sources, NUM_TENSOR_IMAGES), model.image_size),
        sources=path_sources,
        seen=detect(model_of(model, runner), path_sources, params.evaluate, "trained model").detections,
    )


def cost_of(export: ExportParams, speed: Speed, paths: Mapping[str, Path]) -> Cost:
    """What the gate judges: the artefacts at `paths`, by name, at batch 1, and the champion's ONNX beside them."""
    champion = speed.of("champion")
    return Cost(
        artefacts=tuple(_artefact_cost(name, export, speed, path) for name, path in paths.items()),
        champion_seconds_per_image=champion.at(1).p50_seconds if champion else None,
    )


def _artefact_cost(name: str, export: ExportParams, speed: Speed, path: Path) -> ArtefactCost:
    timed = speed.of(name)
    assert timed is not None, "every artefact is timed"
    files = (path, path.with_suffix(".bin")) if name == "openvino" else (path,)
    return ArtefactCost(
        name=name,
        required=name == "onnx" or name in export.required_formats,
        seconds_per_image=timed.at(1).p50_seconds,
        p99_seconds_per_image=timed.at(1).p99_seconds,
        num_bytes=sum(file.stat().st_size for file in files),
    )


def _parity(export: ExportParams, trained: Trained, attempts: Sequence[Attempt], others: Sequence[FormatParity]) -> Parity:
    last = attempts[-1]
    assert last.sha256 is not None, "the last in order was made"
    tried = (*attempts, *(each for other in others for each in other.attempts))
    seen = calibration_images(trained, export) if any(each.precision == "int8" for each in tried) else ()
    return Parity(
        passed=last.passed and all(other.shipped for other in others if other.required),
        precision=last.precision,
        checks=last.checks,
        attempts=tuple(attempts),
        calibration=tuple(CalibrationImage(path=image.path, sha256=image.sha256) for image in seen),
        num_images=len(trained.dataset.of("test")),
        weights_sha256=trained.card.model.weights_sha256,
        onnx_sha256=last.sha256,
        others=tuple(others),
    )


def _speed(params: Params, workspace: Workspace, trained: Trained, paths: Mapping[str, Path]) -> Speed:
    """Every artefact, and the champion's ONNX at its own size, timed in turn."""
    threads = params.export.threads
    images = trained.inputs
    subjects: dict[str, tuple[Runner, NDArray[np.float32]]] = {".pt": (trained.runner, images)}
    subjects |= {name: (RUNNERS[name](path, threads), images) for name, path in paths.items()}
    champion = read_champion(workspace.champion)
    if champion is not None:
        blobs = BlobStore(home_of(workspace.settings) / "blobs")
        runner = OnnxRunner(blobs.verified_path(champion.onnx_sha256, f"the ONNX of champion v{champion.version}"), threads)
        subjects["champion"] = runner, _tensors(spread(trained.sources, NUM_TENSOR_IMAGES), runner.card.model.image_size)
    return measure_speed(subjects, threads)


def _tensors(sources: Sequence[Source], size: int) -> NDArray[np.float32]:
    return np.stack([letterbox(source.load(), size)[0] for source in sources])


if __name__ == "__main__":
    main("export", run)
