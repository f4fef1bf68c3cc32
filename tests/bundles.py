"""Bundles and registries for tests: real files, a real SQLite registry, no training."""

import json
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from nightowl.evaluation.budget import Spending
from nightowl.evaluation.champion import ChampionRecord
from nightowl.evaluation.metrics import ClassMetrics, Curves, Metrics
from nightowl.evaluation.model_file import ModelRecord
from nightowl.evaluation.verdict import Outcome, Verdict
from nightowl.files import sha256_bytes, write_atomic, write_record
from nightowl.params import Params
from nightowl.registry.bundle import BundleFiles, NightFacts, write_bundle
from nightowl.registry.connect import connect, sqlite_uri
from nightowl.registry.record import BundleRecord
from nightowl.registry.store import Registry, open_registry
from nightowl.settings import Settings
from nightowl.training.base import BaseWeights

RANDOM_WEIGHTS = BaseWeights(kind="yaml", name="yolo11n.yaml", sha256=None)


@dataclass(frozen=True)
class Made:
    """What a pretended night made; `weights` are any bytes that tell it from another. `better_than` names the reference that it
    was shown to be better than; `openvino_refused` says why OpenVINO's form was left out, `over_budget` what it breaks."""

    night: str = "20261130T020000-abc1234"
    detector: str = "demo"
    weights: bytes = b"weights one"
    map50: float | None = 0.8
    verdict: Outcome = "promote"
    parity: bool = True
    dirty: bool = False
    champion: ChampionRecord | None = None
    reference: ChampionRecord | None = None
    better_than: str | None = None
    spending: Spending | None = None
    detections: bytes | None = None
    onnx: bytes | None = None
    openvino: bytes | None = None
    openvino_weights: bytes = b"weights of the graph"
    openvino_refused: str | None = None
    over_budget: str | None = None
    base: BaseWeights = RANDOM_WEIGHTS
    params: Params = field(default_factory=Params)


def stage_files(folder: Path, made: Made) -> BundleFiles:
    """Every file of a night that ended, below `folder`."""
    weights, onnx = sha256_bytes(made.weights), made.onnx or b"onnx of " + made.weights
    for path, content in {
        "best.pt": made.weights,
        "model.onnx": onnx,
        "inputs/manifest.jsonl": b"{}\n",
        "inputs/findings.json": b"[]\n",
        "inputs/slices.json": b"{}\n",
        "inputs/golden.txt": b"",
        "inputs/previous.json": b"null\n",
        "inputs/champion.json": (made.champion.model_dump_json() if made.champion else "null").encode(),
        "inputs/reference.json": (made.reference.model_dump_json() if made.reference else "null").encode(),
        "inputs/decisions.json": b"[]\n",
        "results.csv": b"epoch,time,train/box_loss,metrics/mAP50(B)\n1,9,1.5,nan\n2,18,1.25,0.5\n",
        "quarantine.json": b"[]\n",
        "dvc.lock": b"schema: '2.0'\n",
        "requirements.lock": b"numpy==2.0\n",
        "parity.json": json.dumps(
            {
                "passed": made.parity,
                "precision": "int8",
                "weights_sha256": weights,
                "onnx_sha256": sha256_bytes(onnx),
                "others": _others(made),
            }
        ),
    }.items():
        write_atomic(folder / path, content)
    if made.openvino:
        write_atomic(folder / "model.xml", made.openvino)
        write_atomic(folder / "model.bin", made.openvino_weights)
    if made.detections:
        write_atomic(folder / "detections.parquet", made.detections)
    write_record(folder / "inputs" / "base.json", made.base)
    write_record(folder / "model.json", _model(weights))
    write_record(folder / "metrics.json", metrics(weights, made.map50))
    write_record(folder / "curves.json", _curves())
    write_record(folder / "verdict.json", _verdict(made, weights))
    return BundleFiles(
        weights=folder / "best.pt",
        model=folder / "model.json",
        onnx=folder / "model.onnx",
        openvino=folder / "model.xml" if made.openvino else None,
        metrics=folder / "metrics.json",
        curves=folder / "curves.json",
        champion_metrics=None,
        champion_curves=None,
        operating=None,
        operating_test=None,
        detections=None,
        truth=None,
        slices=None,
        instrument=None,
        shipped_detections=folder / "detections.parquet" if made.detections else None,
        verdict=folder / "verdict.json",
        parity=folder / "parity.json",
        speed=None,
        history=folder / "results.csv",
        quarantine=folder / "quarantine.json",
        inputs=folder / "inputs",
        dvc_lock=folder / "dvc.lock",
        requirements_lock=folder / "requirements.lock",
    )


def _others(made: Made) -> list[dict[str, object]]:
    """OpenVINO's form, refused in INT8; then it is shipped in FP32, or is left out."""
    attempts: list[dict[str, object]] = [{"precision": "int8", "passed": False, "refused": ["largest score gap: 0.5"]}]
    if made.openvino_refused:
        attempts.append({"precision": "fp32", "passed": False, "refused": [made.openvino_refused]})
        return [{"name": "openvino", "attempts": attempts, "files": {}}]
    if not made.openvino:
        return []
    files = {"model.xml": sha256_bytes(made.openvino), "model.bin": sha256_bytes(made.openvino_weights)}
    attempts.append({"precision": "fp32", "passed": True, "refused": []})
    return [{"name": "openvino", "attempts": attempts, "files": files}]


def facts(made: Made) -> NightFacts:
    return NightFacts(
        detector=made.detector,
        night_id=made.night,
        night_key=f"key of {made.night}",
        created_at=datetime(2026, 11, 30, 2, tzinfo=UTC),
        code_commit="abc1234def",
        dirty=made.dirty,
    )


def bundle(folder: Path, made: Made) -> tuple[Path, BundleRecord]:
    """A bundle of `made` in `folder`, with its record."""
    record = write_bundle(stage_files(folder / "night", made), facts(made), made.params, folder / "bundle")
    return folder / "bundle", record


def registered(registry: Registry, folder: Path, *nights: Made) -> list[str]:
    """Register `nights` in order; returns their versions."""
    versions = []
    for number, made in enumerate(nights):
        path, record = bundle(folder / f"{made.night}-{number}", made)
        versions.append(registry.register(made.detector, path, record))
    return versions


def new_registry(home: Path) -> Registry:
    """An empty registry in `home`, without the seconds that making one takes."""
    write_atomic(home / "registry" / "mlflow.db", _empty_database())
    return open_registry(Settings(home=home))


def metrics(weights_sha256: str, map50: float | None) -> Metrics:
    one = ClassMetrics(
        name="open", num_truth=9, ap50=map50, ap50_95=map50, precision=None, recall=None, best_f1_confidence=None
    )
    return Metrics(
        model="candidate",
        weights_sha256=weights_sha256,
        dataset_version="data",
        split="test",
        num_images=30,
        num_truth=9,
        map50=map50,
        map75=map50,
        map50_95=map50,
        classes=(one,),
        seconds_per_image=0.01,
    )


@cache
def _empty_database() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mlflow.db"
        connect(sqlite_uri(path), Path(folder) / "lock")
        return path.read_bytes()


def _model(weights: str) -> ModelRecord:
    return ModelRecord(
        architecture="yolo11n",
        classes=("open",),
        image_size=256,
        head="raw",
        weights_sha256=weights,
        base="yolo11n.yaml",
        base_sha256=None,
        epochs_done=3,
        best_epoch=2,
    )


def _curves() -> Curves:
    return Curves(classes=("open",), recall=(), precision=(None,), confusion=((0,),), confusion_confidence=0.25)


def _verdict(made: Made, weights: str) -> Verdict:
    return Verdict(
        outcome=made.verdict,
        basis="against_champion" if made.champion else "first_model",
        sentence="Promoted.",
        checks=(),
        candidate_sha256=weights,
        champion_version=made.champion.version if made.champion else None,
        left_out={"openvino": (made.over_budget,)} if made.over_budget else {},
        spending=made.spending,
        reference_version=made.better_than,
        renews_reference=made.better_than is not None,
    )
