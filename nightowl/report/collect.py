"""Reads what a night left behind into the content of its report.

Only stages that ended well in this night are read: what an earlier night left in the same folder is not this night's. A file
that is absent becomes None, and the page says so; a file that is broken is an error.
"""

import platform
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nightowl.data.audit import Audit
from nightowl.data.findings import Finding, read_findings
from nightowl.data.images import decode_bgr, verified_bytes
from nightowl.data.manifest import SPLITS, Image, Manifest, Split, read_manifest
from nightowl.data.source import source_folder
from nightowl.errors import ParamsError
from nightowl.evaluation.champion import read_champion
from nightowl.evaluation.detections import read_detections
from nightowl.evaluation.metrics import Curves, Metrics
from nightowl.evaluation.model_file import ModelRecord
from nightowl.evaluation.operating_figures import OperatingFigures
from nightowl.evaluation.timings import Speed
from nightowl.evaluation.verdict import Verdict
from nightowl.export.parity import Parity
from nightowl.files import sha256_file
from nightowl.params import Params, load_params
from nightowl.records import Record
from nightowl.report.audit import view_of
from nightowl.report.content import (
    AuditView,
    DataSummary,
    ExportSummary,
    Gallery,
    Lineage,
    NightFacts,
    ReportContent,
    SplitSummary,
)
from nightowl.report.differences import differences, label_doubts
from nightowl.report.gallery import Pixels, build_gallery
from nightowl.report.history import read_history
from nightowl.settings import Settings
from nightowl.stages.workspace import Workspace
from nightowl.training.base import BaseWeights
from nightowl.training.hardware import HardwareSummary
from nightowl.training.record import TrainingRecord

PACKAGES = ("nightowl", "torch", "ultralytics", "onnxruntime")

T = TypeVar("T")
R = TypeVar("R", bound=Record)


def collect(workspace: Workspace, night: NightFacts) -> ReportContent:
    """The content of the report on `night`, from the inputs and outputs in `workspace`.

    Raises:
        DataError, StageFailed, ValueError: when a file is there and is not what it should be.
    """
    evaluated = night.finished("evaluate")
    dataset = _dataset(workspace, night)
    looked = evaluated and workspace.detections("candidate").exists()
    curves = _record(Curves, workspace.curves("candidate")) if evaluated else None
    return ReportContent(
        detector=workspace.detector,
        facts=night,
        lineage=_lineage(workspace),
        verdict=_record(Verdict, workspace.verdict) if night.finished("gate") else None,
        candidate=_record(Metrics, workspace.metrics("candidate")) if evaluated else None,
        champion=_record(Metrics, workspace.metrics("champion")) if evaluated else None,
        curves=curves,
        champion_curves=_record(Curves, workspace.curves("champion")) if evaluated else None,
        model=_record(ModelRecord, workspace.model) if night.finished("train") else None,
        history=_read(read_history, workspace.history) if night.finished("train") else None,
        training=_record(TrainingRecord, workspace.training) if night.finished("train") else None,
        hardware=_record(HardwareSummary, workspace.hardware) if night.executed("train") else None,
        gallery=_gallery(workspace, dataset, curves) if dataset and curves else None,
        operating=_record(OperatingFigures, workspace.operating_test) if night.finished("gate") else None,
        differences=differences(workspace, dataset, _pixels_of(workspace)) if dataset and looked else None,
        doubts=label_doubts(workspace, dataset, _pixels_of(workspace)) if dataset and looked else None,
        data=summarise(dataset, sha256_file(workspace.manifest)) if dataset else None,
        findings=_findings(workspace, night),
        audit=_audit(workspace) if night.finished("prepare") else None,
        export=_export(workspace) if night.finished("export") else None,
    )


def summarise(dataset: Manifest, version: str) -> DataSummary:
    """What is used of a dataset version, in figures."""
    return DataSummary(
        dataset_version=version,
        classes=dataset.classes,
        splits=tuple(_split(dataset, split) for split in SPLITS),
        num_crowds=sum(box.ignore for image in dataset.images for box in image.boxes),
        split_rule=dataset.split_rule,
    )


def _split(dataset: Manifest, split: Split) -> SplitSummary:
    images = dataset.of(split)
    counts = Counter(box.class_id for image in images for box in image.boxes if not box.ignore)
    return SplitSummary(
        split=split,
        num_images=len(images),
        num_empty_images=sum(not image.boxes for image in images),
        num_boxes=tuple(counts[index] for index in range(len(dataset.classes))),
    )


def _dataset(workspace: Workspace, night: NightFacts) -> Manifest | None:
    """What the stages worked on; before prepare, what was pinned."""
    return _read(read_manifest, workspace.dataset if night.finished("prepare") else workspace.manifest)


def _findings(workspace: Workspace, night: NightFacts) -> tuple[Finding, ...] | None:
    found = _read(read_findings, workspace.quarantine if night.finished("prepare") else workspace.findings)
    return None if found is None else tuple(found)


def _audit(workspace: Workspace) -> AuditView | None:
    audit = _record(Audit, workspace.audit)
    if audit is None:
        return None
    manifest, findings = read_manifest(workspace.manifest), read_findings(workspace.quarantine)
    return view_of(audit, findings, manifest, source_folder(workspace.settings, workspace.detector))


def _gallery(workspace: Workspace, dataset: Manifest, curves: Curves) -> Gallery | None:
    detections = _read(read_detections, workspace.detections("candidate"))
    if detections is None:
        return None
    return build_gallery(dataset, detections, curves.confusion_confidence, _pixels_of(workspace))


def _pixels_of(workspace: Workspace) -> Pixels:
    return partial(_pixels, workspace.settings, workspace.detector)


def _pixels(settings: Settings, detector: str, image: Image) -> NDArray[np.uint8]:
    """The pixels that were pinned. Raises DataError when the source no longer holds them."""
    return decode_bgr(verified_bytes(source_folder(settings, detector), image), image.path)


def _export(workspace: Workspace) -> ExportSummary | None:
    parity = _record(Parity, workspace.parity)
    if parity is None or not workspace.onnx.exists():
        return None
    files = {"weights.pt": workspace.weights, "model.onnx": workspace.onnx}
    files |= {name: workspace.onnx.with_name(name) for other in parity.others for name in other.files}
    params, _ = _params(workspace)
    return ExportSummary(
        parity=parity,
        speed=_record(Speed, workspace.speed),
        num_bytes={name: path.stat().st_size for name, path in files.items() if path.exists()},
        formats=params.export.formats if params else ("onnx",),
    )


def _lineage(workspace: Workspace) -> Lineage:
    params, fault = _params(workspace)
    return Lineage(
        params_sha256=params.digest() if params else None,
        params_yaml=params.as_yaml() if params else None,
        params_fault=fault,
        environment_sha256=_read(sha256_file, workspace.root / "requirements.lock"),
        base=_record(BaseWeights, workspace.base),
        champion=_read(read_champion, workspace.champion),
        versions=(("python", platform.python_version()), *((name, version(name)) for name in PACKAGES)),
    )


def _params(workspace: Workspace) -> tuple[Params | None, str | None]:
    """The params, or what is wrong with them: a night may have failed for just that."""
    try:
        return load_params(workspace.root, workspace.detector), None
    except ParamsError as error:
        return None, str(error)


def _record(kind: type[R], path: Path) -> R | None:
    return _read(lambda at: kind.model_validate_json(at.read_bytes()), path)


def _read(reader: Callable[[Path], T], path: Path) -> T | None:
    return reader(path) if path.exists() else None
