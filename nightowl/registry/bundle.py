"""The bundle: one folder with a version and everything its making depended on, complete in itself.

It is published by one rename, with SHA256SUMS written last (`sha256sum -c SHA256SUMS` checks it anywhere). What is registered
is what was measured: weights that the metrics, the verdict or the parity do not name are refused.
"""

import shutil
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from nightowl.errors import StageFailed
from nightowl.evaluation.instrument import Instrument
from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.model_file import ModelRecord
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.operating_figures import OperatingFigures
from nightowl.evaluation.timings import Speed
from nightowl.evaluation.verdict import Verdict
from nightowl.files import publishing_folder, sha256_file, write_atomic, write_record
from nightowl.params import Params
from nightowl.registry.model_card import Measured, model_card
from nightowl.registry.record import BundleRecord
from nightowl.registry.sums import write_sums
from nightowl.training.base import BaseWeights

PINNED = (
    "manifest.jsonl",
    "findings.json",
    "base.json",
    "champion.json",
    "reference.json",
    "decisions.json",
    "slices.json",
    "golden.txt",
    "previous.json",
)


@dataclass(frozen=True)
class BundleFiles:
    """Where what goes into a bundle lies. `inputs` is the folder of the pinned inputs; None is what this night has not."""

    weights: Path
    model: Path
    onnx: Path
    openvino: Path | None
    metrics: Path
    curves: Path
    champion_metrics: Path | None
    champion_curves: Path | None
    operating: Path | None
    operating_test: Path | None
    detections: Path | None
    truth: Path | None
    slices: Path | None
    instrument: Path | None
    shipped_detections: Path | None
    verdict: Path
    parity: Path
    speed: Path | None
    history: Path
    quarantine: Path
    inputs: Path
    dvc_lock: Path
    requirements_lock: Path
    machines: Path | None = None

    def named(self) -> dict[str, Path]:
        """The files by their names in the bundle."""
        names = {
            "weights.pt": self.weights,
            "model.json": self.model,
            "model.onnx": self.onnx,
            "model.xml": self.openvino,
            "model.bin": self.openvino and self.openvino.with_suffix(".bin"),
            "metrics.json": self.metrics,
            "curves.json": self.curves,
            "champion_metrics.json": self.champion_metrics,
            "champion_curves.json": self.champion_curves,
            "operating.json": self.operating,
            "operating_test.json": self.operating_test,
            "detections.parquet": self.detections,
            "truth.parquet": self.truth,
            "slices.json": self.slices,
            "instrument.json": self.instrument,
            "shipped_detections.parquet": self.shipped_detections,
            "verdict.json": self.verdict,
            "parity.json": self.parity,
            "speed.json": self.speed,
            "results.csv": self.history,
            "quarantine.json": self.quarantine,
            "dvc.lock": self.dvc_lock,
            "requirements.lock": self.requirements_lock,
            "machines.json": self.machines,
        }
        return {name: path for name, path in names.items() if path is not None} | {
            f"inputs/{name}": self.inputs / name for name in PINNED
        }


@dataclass(frozen=True)
class NightFacts:
    """What only the night knows. `dirty` says that its tree had changes that were not committed; `container` is the image, by
    its digest, that its stages ran in."""

    detector: str
    night_id: str
    night_key: str
    created_at: datetime
    code_commit: str
    dirty: bool
    container: str | None = None


class _Attempt(BaseModel):
    model_config = ConfigDict(extra="ignore")

    precision: str
    passed: bool
    refused: tuple[str, ...]


class _Format(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str
    attempts: tuple[_Attempt, ...]
    files: dict[str, str]

    def in_words(self) -> tuple[str, ...]:
        """Why it is left out; empty when it ships."""
        if self.attempts[-1].passed:
            return ()
        return tuple(f"{each.precision}: {line}" for each in self.attempts for line in each.refused)


class _Parity(BaseModel):
    """The part of parity.json that the registry holds others to."""

    model_config = ConfigDict(extra="ignore")

    passed: bool
    precision: str
    weights_sha256: str
    onnx_sha256: str
    others: tuple[_Format, ...] = ()

    def precision_of(self, model_format: str) -> str:
        """That a format ships in; TensorRT compiles the ONNX."""
        own = {other.name: other.attempts[-1].precision for other in self.others}
        return own.get(model_format, self.precision)


def write_bundle(files: BundleFiles, facts: NightFacts, params: Params, target: Path) -> BundleRecord:
    """Publish the folder `target`, whole, and return its record.

    Raises:
        StageFailed: when a file is missing, or the files are not all about the same model.
    """
    missing = [str(path) for path in files.named().values() if not path.is_file()]
    if missing:
        raise StageFailed(f"{facts.detector}: no bundle without {', '.join(missing)}; run the stages first")
    record = _record(files, facts, params)
    shipped = replace(files, openvino=None) if "openvino" in record.left_out else files
    with publishing_folder(target) as scratch:
        for name, path in shipped.named().items():
            (scratch / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(path, scratch / name)
        write_atomic(scratch / "params.yaml", params.as_yaml())
        write_record(scratch / "record.json", record)
        write_atomic(scratch / "MODEL_CARD.md", _card(files, record, params))
        shutil.copyfile(Path(__file__).with_name("run_model.py"), scratch / "run_model.py")
        write_sums(scratch)
    return record


def _card(files: BundleFiles, record: BundleRecord, params: Params) -> str:
    verdict = Verdict.model_validate_json(files.verdict.read_bytes())
    measured = Measured(
        metrics=Metrics.model_validate_json(files.metrics.read_bytes()),
        operating=OperatingPoint.model_validate_json(files.operating.read_bytes()) if files.operating else None,
        on_test=OperatingFigures.model_validate_json(files.operating_test.read_bytes()) if files.operating_test else None,
        speed=Speed.model_validate_json(files.speed.read_bytes()) if files.speed else None,
    )
    return model_card(record, measured, verdict, params.evaluate)


def _record(files: BundleFiles, facts: NightFacts, params: Params) -> BundleRecord:
    metrics = Metrics.model_validate_json(files.metrics.read_bytes())
    verdict = Verdict.model_validate_json(files.verdict.read_bytes())
    parity = _Parity.model_validate_json(files.parity.read_bytes())
    model = ModelRecord.model_validate_json(files.model.read_bytes())
    weights, onnx = sha256_file(files.weights), sha256_file(files.onnx)
    _refuse_another_model(files.weights, weights, {"model.json": model.weights_sha256, "metrics.json": metrics.weights_sha256})
    _refuse_another_model(
        files.weights, weights, {"verdict.json": verdict.candidate_sha256, "parity.json": parity.weights_sha256}
    )
    _refuse_another_model(files.onnx, onnx, {"parity.json": parity.onnx_sha256})
    for name, digest in (file for other in parity.others for file in other.files.items()):
        path = files.onnx.with_name(name)
        _refuse_another_model(path, sha256_file(path), {"parity.json": digest})
    left_out = {other.name: other.in_words() for other in parity.others if other.in_words()} | verdict.left_out
    return BundleRecord(
        detector=facts.detector,
        night_id=facts.night_id,
        night_key=facts.night_key,
        created_at=facts.created_at,
        code_commit=facts.code_commit,
        dirty=facts.dirty,
        container=facts.container,
        dataset_version=sha256_file(files.inputs / "manifest.jsonl"),
        params_sha256=params.digest(),
        environment_sha256=sha256_file(files.requirements_lock),
        base=BaseWeights.model_validate_json((files.inputs / "base.json").read_bytes()),
        classes=model.classes,
        image_size=model.image_size,
        weights_sha256=weights,
        onnx_sha256=onnx,
        formats={name: parity.precision_of(name) for name in params.export.formats if name not in left_out},
        left_out=left_out,
        detections_sha256=sha256_file(files.shipped_detections) if files.shipped_detections else None,
        instrument=Instrument.model_validate_json(files.instrument.read_bytes()) if files.instrument else None,
        champion_version=verdict.champion_version,
        map50=metrics.map50,
        map50_95=metrics.map50_95,
        verdict=verdict.outcome,
        verdict_sentence=verdict.sentence,
        spending=verdict.spending,
        reference_version=verdict.reference_version,
        renews_reference=verdict.renews_reference,
        parity_passed=parity.passed,
    )


def _refuse_another_model(path: Path, digest: str, named: dict[str, str]) -> None:
    for name, expected in named.items():
        if expected != digest:
            raise StageFailed(
                f"{path}: SHA-256 {digest[:12]}, but {name} is about {expected[:12]}: what is registered must be what was "
                "measured; run the stages again"
            )
