"""Stage evaluate: what tonight's candidate, the standing champion and the reference are worth on the test split, by one code.

The candidate is measured as trained (.pt). The others are measured as they were shipped, by their ONNX: that file opens
whatever the version of ultralytics, holds no pickle, and parity bound it to its weights when it was exported. Their classes
are matched to tonight's by name and only common ones are measured (the records list just those); with none in common a model
is not measured. Thresholds are chosen on val, never on test.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from nightowl.data.blobs import BlobStore
from nightowl.data.manifest import Manifest, read_manifest
from nightowl.data.source import source_folder
from nightowl.evaluation.champion import ChampionRecord, read_champion
from nightowl.evaluation.choose_operating import choose_operating_point
from nightowl.evaluation.detect import Detected, model_of
from nightowl.evaluation.detections import write_detections
from nightowl.evaluation.device import torch_device
from nightowl.evaluation.evaluate import Measured, Subject
from nightowl.evaluation.instrument import this_instrument
from nightowl.evaluation.measure import detect_split, measure
from nightowl.evaluation.model_file import ModelRecord
from nightowl.evaluation.runners import OnnxRunner, TorchRunner
from nightowl.evaluation.slices import Slice, Slices, read_slice_facts, slices_of
from nightowl.evaluation.truth import truth_of
from nightowl.evaluation.truth_table import write_truth
from nightowl.files import write_record
from nightowl.params import EvaluateParams, Params
from nightowl.settings import home_of
from nightowl.stages.frame import main
from nightowl.stages.workspace import Workspace
from nightowl.training.yolo import load_torch_model


def run(params: Params, workspace: Workspace, out: Path) -> None:
    """Write candidate and (where comparable) champion: metrics, curves, detections; and the candidate's operating point."""
    dataset = read_manifest(workspace.dataset)
    source = source_folder(workspace.settings, workspace.detector)
    champion, reference = read_champion(workspace.champion), read_champion(workspace.reference)
    write_record(out / workspace.instrument.name, this_instrument(params.evaluate))
    slices = slices_of(dataset.of("test"), params.evaluate.slices, read_slice_facts(workspace.slice_facts))
    write_record(out / workspace.slices.name, Slices(slices=slices))
    write_truth(out / workspace.truth.name, truth_of(dataset.classes, dataset.of("test")))
    _candidate(params.evaluate, workspace, dataset, source, slices, out)
    if champion is not None:
        _standing(params.evaluate, workspace, dataset, source, slices, "champion", champion, out)
    if champion is not None and reference is not None and reference.weights_sha256 != champion.weights_sha256:
        _standing(params.evaluate, workspace, dataset, source, slices, "reference", reference, out)


def _candidate(
    limits: EvaluateParams, workspace: Workspace, dataset: Manifest, source: Path, slices: Sequence[Slice], out: Path
) -> None:
    record = ModelRecord.model_validate_json(workspace.model.read_bytes())
    module = load_torch_model(workspace.weights, record.weights_sha256)
    runner = TorchRunner(module, torch_device(workspace.settings.device))
    model = model_of(record, runner)
    on_val = detect_split(model, dataset, "val", source, limits)
    write_detections(out / "candidate_val.parquet", on_val.detections)
    version = dataset.version()
    truth = truth_of(dataset.classes, dataset.of("val"))
    operating = choose_operating_point(truth, on_val.detections, version, limits.operating_point)
    write_record(out / workspace.operating.name, operating)
    on_test = detect_split(model, dataset, "test", source, limits)
    subject = Subject("candidate", record.weights_sha256, version, "test", on_test.seconds_per_image)
    measured = measure(dataset, dataset.classes, on_test, subject, limits, operating.overall, slices)
    _write(out, "candidate", on_test, measured)


def _standing(
    limits: EvaluateParams,
    workspace: Workspace,
    dataset: Manifest,
    source: Path,
    slices: Sequence[Slice],
    whose: str,
    standing: ChampionRecord,
    out: Path,
) -> None:
    """Measure the champion or the reference, `whose`, by its ONNX and over the classes in common."""
    common = tuple(name for name in dataset.classes if name in standing.classes)
    if not common:
        print(f"{whose} v{standing.version} knows none of tonight's classes; it is not measured", file=sys.stderr)
        return
    blobs = BlobStore(home_of(workspace.settings) / "blobs")
    runner = OnnxRunner(blobs.verified_path(standing.onnx_sha256, f"the ONNX of {whose} v{standing.version}"))
    facts = runner.card.model
    seen = detect_split(model_of(facts, runner), dataset, "test", source, limits)
    found = seen._replace(detections=seen.detections.with_classes(common))
    name = f"{standing.detector} v{standing.version}"
    subject = Subject(name, standing.weights_sha256, dataset.version(), "test", seen.seconds_per_image)
    write_record(out / f"{whose}_operating.json", runner.card.operating.among(common))
    overall = runner.card.operating.overall
    _write(out, whose, found, measure(dataset, common, found, subject, limits, overall, slices))


def _write(out: Path, whose: str, found: Detected, measured: Measured) -> None:
    write_detections(out / f"{whose}.parquet", found.detections)
    write_record(out / f"{whose}.json", measured.metrics)
    write_record(out / f"{whose}_curves.json", measured.curves)


if __name__ == "__main__":
    main("evaluate", run)
