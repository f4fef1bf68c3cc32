"""A believable night on disk, without training: board images, detections made from their truth, the real evaluator and gate.

`python -m tests.report.sample FOLDER` writes one page for each way a night can end.
"""

import csv
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from nightowl.audit_params import AuditParams
from nightowl.boards.board import draw_board
from nightowl.data.audit import Audit, rows_of
from nightowl.data.findings import Finding, write_findings
from nightowl.data.manifest import Image, Manifest, Split, write_manifest
from nightowl.data.source import record_source
from nightowl.evaluation.budget import Question, Spending, Spent, spending_tonight, write_history
from nightowl.evaluation.champion import ChampionRecord, write_champion
from nightowl.evaluation.comparison import compare_detections
from nightowl.evaluation.detections import Detections, gather, write_detections
from nightowl.evaluation.evaluate import Measured, Subject, evaluate
from nightowl.evaluation.gate import judge
from nightowl.evaluation.holdout import holdout_of
from nightowl.evaluation.model_file import ModelRecord
from nightowl.evaluation.operating import ClassThreshold, OperatingPoint
from nightowl.evaluation.operating_figures import operating_figures
from nightowl.evaluation.postprocess import Found
from nightowl.evaluation.slices import Slice
from nightowl.evaluation.timings import ArtefactSpeed, Speed
from nightowl.evaluation.truth import truth_of
from nightowl.export.parity import Attempt, FormatParity, Parity, ParityCheck
from nightowl.export.speed import BATCHES, timing_of
from nightowl.files import sha256_file, write_atomic, write_record
from nightowl.machines.account import Account
from nightowl.machines.goodput import Goodput
from nightowl.machines.job import Environment
from nightowl.params import GateParams
from nightowl.report.collect import collect
from nightowl.report.content import Failure, NightEnding, NightFacts, ReportContent, StageTiming
from nightowl.report.page import write_report
from nightowl.settings import load_settings
from nightowl.stages.workspace import STAGES, Workspace
from nightowl.training.base import BaseWeights
from nightowl.training.compute import Compute
from nightowl.training.hardware import GpuSample, summarise
from nightowl.training.progress import Shrink, World
from nightowl.training.record import TrainingRecord

CLASSES = ("open", "short", "mousebite", "spur", "spurious copper", "pin hole")
SECTIONS = "data: {}\nprepare: {}\ntrain: {}\nevaluate: {}\ngate: {}\nexport: {}\n"
CONFIDENCE = 0.31


def make_workspace(root: Path, classes: tuple[str, ...] = CLASSES, num_test: int = 12, size: int = 128) -> Workspace:
    """A checkout at `root` in which a whole night has run, on a source beside it."""
    write_atomic(root / "params.yaml", "detectors: [demo]\n" + SECTIONS)
    own = SECTIONS.replace("prepare: {}", "prepare: {image_size: 256}").replace("train: {}", "train: {base: yolo11n.yaml}")
    write_atomic(root / "detectors/demo/params.yaml", own)
    write_atomic(root / "requirements.lock", "torch==2.14.1\n")
    write_atomic(root / "settings.toml", f'home = "{root / "home"}"\n')
    workspace = Workspace(root, "demo", load_settings(root))
    dataset = _dataset(root / "source", classes, num_test, size)
    record_source(workspace.settings, "demo", root / "source")
    write_manifest(workspace.manifest, dataset)
    write_manifest(workspace.dataset, dataset)
    _inputs(workspace, dataset)
    _training(workspace)
    _evaluation(workspace, dataset)
    _parity(workspace)
    return workspace


def facts(
    ending: NightEnding, *, stages: tuple[str, ...] = STAGES, failure: Failure | None = None, sentence: str
) -> NightFacts:
    """A night of which `stages` ended well."""
    seconds = {"prepare": 3.4, "train": 254.2, "evaluate": 21.7, "gate": 1.9, "export": 38.2}
    return NightFacts(
        night_id="demo-20261130-0205-7f3a",
        started_at=datetime(2026, 11, 30, 2, 5, tzinfo=UTC),
        seconds=329.0,
        code_commit="6b1f0c2a9d4e8f7a5b3c1d0e9f8a7b6c5d4e3f2a",
        dirty=False,
        ending=ending,
        sentence=sentence,
        registered_version="8" if "export" in stages else None,
        previous_champion="7",
        stages=tuple(StageTiming(stage=s, executed=s != "prepare", seconds=seconds[s]) for s in stages),
        failure=failure,
    )


def _dataset(source: Path, classes: tuple[str, ...], num_test: int, size: int) -> Manifest:
    images = [_image(source, index, "test", classes, size) for index in range(num_test)]
    others: list[tuple[Split, int]] = [("train", 40), ("val", 9)]
    for split, count in others:
        for index in range(count):
            image = images[index % num_test]
            path = f"images/{split}/board-{index:04d}.png"
            images.append(Image(path, image.sha256, image.num_bytes, size, size, split, image.boxes))
    return Manifest(classes, tuple(sorted(images, key=lambda image: image.path)), "as the folders of the source have it")


def _image(source: Path, index: int, split: Split, classes: tuple[str, ...], size: int) -> Image:
    board = draw_board(7, index, size)
    path = source / f"images/{split}/board-{index:04d}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(board.image).save(path)
    boxes = tuple(box._replace(class_id=box.class_id % len(classes)) for box in board.boxes)
    return Image(str(path.relative_to(source)), sha256_file(path), path.stat().st_size, size, size, split, boxes)


def _inputs(workspace: Workspace, dataset: Manifest) -> None:
    findings = [
        Finding(kind="unreadable_image", path="images/train/lot3-0007.png", detail="truncated", action="image quarantined"),
        Finding(kind="out_of_frame_box", path="images/val/lot1-0002.png", detail="2.3 px beyond the right", action="clipped"),
        Finding(kind="duplicate_box", path="images/train/lot2-0011.png", detail="short, twice", action="box quarantined"),
        Finding(kind="duplicate_box", path="images/train/lot2-0017.png", detail="spur, twice", action="box quarantined"),
    ]
    write_findings(workspace.findings, findings)
    write_findings(workspace.quarantine, findings)
    rows = rows_of(findings, 100, AuditParams())
    write_record(workspace.audit, Audit(dataset_version="d" * 64, num_images=100, compared_with=None, rows=rows, drift=()))
    write_record(workspace.base, BaseWeights(kind="yaml", name="yolo11n.yaml", sha256=None))
    for path in (workspace.champion, workspace.reference):
        write_champion(path, _champion(dataset.classes))
    write_history(workspace.decisions, ())


def _champion(classes: tuple[str, ...]) -> ChampionRecord:
    return ChampionRecord(
        detector="demo",
        version="7",
        night_key="c" * 64,
        classes=classes,
        image_size=256,
        weights_sha256="7a" * 32,
        onnx_sha256="7b" * 32,
        dataset_version="7c" * 32,
    )


def _training(workspace: Workspace) -> None:
    rng = np.random.default_rng(3)
    rows = []
    for epoch in range(1, 41):
        rest, risen = float(np.exp(-epoch / 11)), 1 - float(np.exp(-((epoch / 13) ** 1.6)))
        noise = rng.normal(0, 0.012, 8)
        row: dict[str, object] = {"epoch": epoch, "time": epoch * 6.3}
        for k, (loss, low, high) in enumerate((("box_loss", 1.05, 2.1), ("cls_loss", 0.7, 3.6), ("dfl_loss", 0.95, 1.1))):
            row[f"train/{loss}"] = low + high * rest + noise[k]
            row[f"val/{loss}"] = low * 1.12 + high * rest * 1.05 + noise[k + 3] * 3
        row |= {"metrics/precision(B)": 0.9 * risen + noise[6], "metrics/recall(B)": 0.84 * risen + noise[7]}
        row |= {"metrics/mAP50(B)": 0.88 * risen + noise[6] / 2, "metrics/mAP50-95(B)": 0.51 * risen + noise[7] / 2}
        row["lr/pg0"] = 0.01 * min(epoch / 3, 1) * (1 - 0.99 * epoch / 40)
        rows.append({k: max(v, 0) if isinstance(v, float) else v for k, v in row.items()})
    workspace.history.parent.mkdir(parents=True, exist_ok=True)
    with workspace.history.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    write_atomic(workspace.weights, b"w" * 5_400_000)
    record = ModelRecord(
        architecture="yolo11n.yaml",
        classes=CLASSES,
        image_size=256,
        head="raw",
        weights_sha256="8a" * 32,
        base="yolo11n.yaml",
        base_sha256=None,
        epochs_done=40,
        best_epoch=37,
    )
    write_record(workspace.model, record)
    shrunk = Shrink(epoch=2, step=4, phase="train", before=32, after=16)
    write_record(
        workspace.training,
        TrainingRecord(
            compute=Compute(precision="bf16", memory_format="channels_last"),
            resolved={"optimizer": "AdamW"},
            worlds=(World(epoch=0, step=0, world_size=2), World(epoch=9, step=3, world_size=1)),
            micro_batch=16,
            shrunk=(shrunk,),
            skipped=((7, 2),),
            seconds=250.0,
            waiting_for_data=0.034,
        ),
    )
    hot = {"busy_percent": 93.0, "used_bytes": 21 * 10**9, "total_bytes": 24 * 10**9, "celsius": 83.0, "watts": 71.0}
    sample = GpuSample(**hot, clock_mhz=1500.0, full_clock_mhz=2000.0, held_back_by=("power limit",))
    write_record(workspace.hardware, summarise("NVIDIA L4", [sample]))


def detections_like(dataset: Manifest, skill: float, seed: int) -> Detections:
    """What a model of some skill (0 to 1) might find in the test split: truth shaken, some of it missed, some made up."""
    rng, images, num_classes = np.random.default_rng(seed), dataset.of("test"), len(dataset.classes)
    found = []
    for image in images:
        rows: list[list[float]] = []
        for box in image.boxes:
            if rng.random() < skill:
                shaken = np.array(box[1:5]) + rng.normal(0, 1.2, 4) * (1.6 - skill)
                class_id = box.class_id if rng.random() < 0.96 else int(rng.integers(num_classes))
                rows.append([*shaken, min(0.98, float(rng.beta(6, 2))), class_id])
        for _ in range(int(rng.poisson(2.2 * (1.15 - skill)))):
            x, y = rng.random(2) * 0.85 * image.width
            rows.append([x, y, x + 14, y + 11, float(rng.beta(2, 4)), int(rng.integers(num_classes))])
        found.append(_found(np.array(rows, np.float64).reshape(-1, 6)))
    return gather(dataset.classes, [image.path for image in images], found)


def _found(rows: NDArray[np.float64]) -> Found:
    return Found(rows[:, :4].astype(np.float32), rows[:, 4].astype(np.float32), rows[:, 5].astype(np.int32))


def _evaluation(workspace: Workspace, dataset: Manifest) -> None:
    measured: dict[str, Measured] = {}
    found: dict[str, Detections] = {}
    truth = truth_of(dataset.classes, dataset.of("test"))
    for whose, sha256, skill, seed in (("candidate", "8a" * 32, 0.93, 5), ("champion", "7a" * 32, 0.86, 6)):
        detections = found[whose] = detections_like(dataset, skill, seed)
        subject = Subject("candidate" if whose == "candidate" else "demo v7", sha256, dataset.version(), "test", 0.021)
        slices = (Slice(name="lot=1", images=truth.images[:4]), Slice(name="lot=2", images=truth.images[4:]))
        measured[whose] = evaluate(
            truth, detections, subject, max_detections=300, confusion_confidence=CONFIDENCE, slices=slices
        )
        write_detections(workspace.detections(whose), detections)
        write_record(workspace.metrics(whose), measured[whose].metrics)
        write_record(workspace.curves(whose), measured[whose].curves)
    standing = _champion(dataset.classes)
    gate = GateParams(min_map50=0.5, min_test_images=10)
    comparison = compare_detections(truth, found["candidate"], found["champion"], gate, 300)
    spending = _spending(dataset)
    metrics = measured["candidate"].metrics, measured["champion"].metrics
    write_record(workspace.verdict, judge(gate, *metrics, standing, comparison, spending))
    point = OperatingPoint(
        split="val",
        dataset_version=dataset.version(),
        overall=CONFIDENCE,
        classes=tuple(ClassThreshold(name=name, confidence=CONFIDENCE) for name in dataset.classes),
    )
    for path in (workspace.operating, workspace.champion_operating):
        write_record(path, point)
    groups = np.arange(len(truth.images))
    figures = operating_figures(truth, found["candidate"], point, groups, 0.95, 200)
    assert figures is not None
    write_record(workspace.operating_test, figures)


def _spending(dataset: Manifest) -> Spending:
    """What the eleventh decision on this test set may spend."""
    question = Question(candidate="8a" * 32, champion="7a" * 32, reference=None, holdout=holdout_of(dataset))
    past = [Spent(night=f"{n}", question=question.model_copy(update={"candidate": f"{n}"}), alpha=0.04) for n in range(10)]
    return spending_tonight(past, question, 0.05)


def _parity(workspace: Workspace) -> None:
    write_atomic(workspace.onnx, b"o" * 10_600_000)
    checks = (
        ParityCheck(rule="largest score gap", passed=True, figure=4.2e-6, limit=0.001),
        ParityCheck(rule="largest box gap, px", passed=True, figure=0.00031, limit=0.1),
        ParityCheck(rule="mAP50-95 gap on test", passed=True, figure=0.0, limit=0.001),
    )
    refused = Attempt(
        precision="int8",
        passed=False,
        checks=(ParityCheck(rule="mAP50-95 gap on test", passed=False, figure=0.021, limit=0.005),),
        refused=("mAP50-95 gap on test: 0.021, at most 0.005",),
        drift=None,
        sha256="8c" * 32,
        num_bytes=3_100_000,
    )
    taken = Attempt(
        precision="fp32", passed=True, checks=checks, refused=(), drift=None, sha256="8b" * 32, num_bytes=10_600_000
    )
    parity = Parity(
        passed=True,
        precision="fp32",
        checks=checks,
        attempts=(refused, taken),
        calibration=(),
        num_images=12,
        weights_sha256="8a" * 32,
        onnx_sha256="8b" * 32,
        others=(FormatParity(name="openvino", required=False, attempts=(taken,), files={"model.xml": "8d" * 32}),),
    )
    write_record(workspace.parity, parity)
    speed = Speed(cpu="a processor", threads=1, artefacts=(_speed_of(".pt", 0.0312), _speed_of("onnx", 0.0113)))
    write_record(workspace.speed, speed)


def _speed_of(name: str, seconds: float) -> ArtefactSpeed:
    timings = tuple(timing_of(batch, [seconds * batch, seconds * batch * 1.1]) for batch in BATCHES)
    return ArtefactSpeed(name=name, timings=timings)


def endings(workspace: Workspace) -> dict[str, ReportContent]:
    """A content for each way a night can end."""
    whole = collect(workspace, facts("promoted", sentence=""))
    promoted = _judged(whole, GateParams(rule="point", min_map50=0.5, min_test_images=1, margin=1, max_drop_class_ap50=1))
    message = (
        "train@demo: loss became NaN at epoch 12, batch 31; lower train.lr0 (now 0.01) or look at images/train/lot3-0009.png"
    )
    failed = facts(
        "failed", stages=("prepare",), failure=Failure(stage="train", message=message, seconds=7.0), sentence=message
    )
    stands = "nothing new since version 7 was made: the champion stands"
    quiet = facts("nothing_new", stages=(), sentence=stands)
    refused = _judged(whole, GateParams(rule="point", min_class_ap50=0.9, min_test_images=1))
    undecided = _judged(whole, GateParams(rule="point", min_test_images=1000))
    return {
        "promoted": promoted,
        "refused": refused,
        "undecided": undecided,
        "failed": collect(workspace, failed),
        "nothing_new": collect(workspace, quiet),
        "rented": promoted.model_copy(update={"facts": promoted.facts.model_copy(update={"rented": an_account()})}),
    }


def an_account() -> Account:
    """Of four spot machines that trained three hours; one was taken back with a notice, one without."""
    spent = Goodput(
        num_machines=4,
        num_spot=3,
        hours_paid=6.4,
        hours_training=5.1,
        hours_redone=0.02,
        hours_checkpoints=0.06,
        hours_cache=0.11,
        hours_data=0.21,
        hours_environment=0.18,
        hours_waiting=0.37,
        hours_other_stages=0.19,
        hours_other=0.16,
        hours_no_machine=0.3,
        steps=18240,
        steps_redone=73,
        restarts=2,
        notices=1,
        lost_without_notice=1,
        usd=2.61,
        usd_on_demand=6.46,
        usd_for_deadline=0.48,
    )
    return Account(
        run_id="demo-0123456789abcdef",
        how="done",
        environment=Environment(kind="container", container="registry.example/nightowl@sha256:" + "5c" * 32),
        full_price="12 min to spare: too little to wait for spot",
        goodput=spent,
    )


def _judged(content: ReportContent, gate: GateParams) -> ReportContent:
    """The same night under another gate."""
    assert content.candidate is not None
    verdict = judge(gate, content.candidate, content.champion, content.lineage.champion)
    night = facts("promoted" if verdict.promote else "refused", sentence=verdict.sentence)
    return content.model_copy(update={"verdict": verdict, "facts": night})


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, content in endings(make_workspace(folder / "checkout", num_test=48, size=320)).items():
        write_report(folder / f"{name}.html", content)
