"""The whole stage on a handful of tiny images: a narrow yolo11n on 64 pixels, from random weights."""

import csv
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

from nightowl.data.blobs import BlobStore
from nightowl.data.golden import GoldenImage, golden_text
from nightowl.data.manifest import Box, Image, Manifest, Split, read_manifest, write_manifest
from nightowl.errors import DataError, Preempted, SettingsError, WeightsError
from nightowl.evaluation.model_file import ModelRecord
from nightowl.files import sha256_file, write_atomic, write_record
from nightowl.params import Params
from nightowl.settings import Settings, home_of
from nightowl.stages import train as stage
from nightowl.stages.workspace import Workspace
from nightowl.training import images, job, yolo
from nightowl.training.base import BaseWeights
from nightowl.training.compute import choose_compute
from nightowl.training.device_augment import apply_hsv_gains
from nightowl.training.display import Display
from nightowl.training.record import TrainingRecord
from tests.training.standins import small

RANDOM = BaseWeights(kind="yaml", name="yolo11n.yaml", sha256=None)
SPLIT: tuple[Split, ...] = ("train", "train", "train", "train", "val", "val")


def make_params(**train: object) -> Params:
    values = {"base": "yolo11n.yaml", "epochs": 1, "global_batch": 2, "optimizer": "AdamW", "lr0": 0.001, **train}
    return Params.model_validate({"prepare": {"image_size": 64}, "train": values})


def make_workspace(folder: Path, base: BaseWeights = RANDOM, splits: tuple[Split, ...] = SPLIT) -> Workspace:
    """A checkout with what the stage reads, and a source with a noisy image for each entry of `splits`."""
    source = folder / "source"
    source.mkdir(parents=True)
    images = []
    for number, split in enumerate(splits):
        pixels = np.random.default_rng(number).integers(90, 160, (48, 64, 3), dtype=np.uint8)
        pixels[8:24, 8 + number : 30 + number] = (200, 40, 40)
        path = source / f"{number}.png"
        PIL.Image.fromarray(pixels).save(path)
        box = Box(number % 2, 8 + number, 8, 30 + number, 24)
        images.append(Image(path.name, sha256_file(path), path.stat().st_size, 64, 48, split, (box,)))
    settings = Settings(home=folder / "home", weights=folder / "weights", device="cpu", sources={"tiny": str(source)})
    workspace = Workspace(folder, "tiny", settings)
    write_manifest(workspace.dataset, Manifest(("cell", "platelet"), tuple(images), "as given"))
    write_record(workspace.base, base)
    return workspace


def run(params: Params, workspace: Workspace, name: str = "published") -> Path:
    out = workspace.root / name
    out.mkdir(exist_ok=True)
    stage.run(params, workspace, out)
    return out


def history(out: Path) -> list[dict[str, str]]:
    with (out / "results.csv").open() as file:
        return list(csv.DictReader(file))


def checkpoints(workspace: Workspace) -> list[Path]:
    return sorted((workspace.root / "home" / "checkpoints" / "tiny").iterdir())


@pytest.fixture(scope="module", autouse=True)
def narrow() -> Iterator[None]:
    """The named architectures, an eighth as wide: a step then costs little beside what the stage does around it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job, "architecture", small)
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Path]:
    """One training of two epochs, that many tests look at."""
    workspace = make_workspace(tmp_path_factory.mktemp("trained"))
    return workspace, run(make_params(epochs=2, close_mosaic_epochs=1), workspace)


def test_it_publishes_weights_record_and_history_and_nothing_else(trained: tuple[Workspace, Path]) -> None:
    _, out = trained
    assert sorted(path.name for path in out.iterdir()) == ["best.pt", "model.json", "results.csv", "training.json"]
    record = ModelRecord.model_validate_json((out / "model.json").read_bytes())
    assert (record.architecture, record.head, record.base, record.base_sha256) == ("yolo11n.yaml", "raw", "yolo11n.yaml", None)
    assert (record.classes, record.image_size, record.epochs_done) == (("cell", "platelet"), 64, 2)
    assert record.weights_sha256 == sha256_file(out / "best.pt")
    assert record.best_epoch in (1, 2)
    assert [row["epoch"] for row in history(out)] == ["1", "2"]


def test_tensorboard_has_an_event_an_epoch(trained: tuple[Workspace, Path]) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    workspace, out = trained
    (folder,) = (home_of(workspace.settings) / "tensorboard" / workspace.detector).iterdir()
    events = EventAccumulator(str(folder))
    events.Reload()
    num_epochs = len((out / "results.csv").read_text().splitlines()) - 1
    for name in ("train/box_loss", "val/mAP50", "lr/pg0", "speed/images_per_second", "memory/peak_bytes"):
        assert [event.step for event in events.Scalars(name)] == list(range(1, num_epochs + 1)), name
    assert not workspace.hardware.exists(), "there is no GPU to tell of"


def test_the_weights_open_as_a_plain_detector_without_fusing(trained: tuple[Workspace, Path]) -> None:
    _, out = trained
    module = yolo.load_torch_model(out / "best.pt", sha256_file(out / "best.pt"))
    assert not module.training
    assert {parameter.dtype for parameter in module.parameters()} == {torch.float32}
    assert any(isinstance(part, torch.nn.BatchNorm2d) for part in module.modules())
    with torch.inference_mode():
        output = module(torch.zeros(1, 3, 64, 64))
    assert output[0].shape == (1, 4 + 2, 64 // 8 * 8 + 4 * 4 + 2 * 2)


def test_the_weights_open_with_ultralytics_alone(trained: tuple[Workspace, Path]) -> None:
    _, out = trained
    code = "import sys; from ultralytics import YOLO; m = YOLO(sys.argv[1]); print(m.task, m.names)"
    environment = {"YOLO_CONFIG_DIR": str(out.parent / "config"), "YOLO_OFFLINE": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(out / "best.pt")], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.splitlines()[-1] == "detect {0: 'cell', 1: 'platelet'}"


def test_the_weights_say_nothing_of_the_machine(trained: tuple[Workspace, Path]) -> None:
    workspace, out = trained
    content = (out / "best.pt").read_bytes()
    assert str(workspace.root).encode() not in content
    assert b"nightowl-ultralytics" not in content


def test_a_finished_training_is_reused_and_that_is_said(
    trained: tuple[Workspace, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def not_again(*_: object) -> None:
        raise AssertionError("trained again")

    workspace, out = trained
    monkeypatch.setattr(stage, "train_on", not_again)
    settings = workspace.settings.model_copy(update={"nproc": 2})
    again = run(make_params(epochs=2, close_mosaic_epochs=1), replace(workspace, settings=settings), "again")
    assert sha256_file(again / "best.pt") == sha256_file(out / "best.pt")
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and said.startswith("this training is finished (2 epochs")
    assert "the 2 ranks were not needed" in said and "To train anew" in said


def test_how_it_was_computed_is_in_the_record(trained: tuple[Workspace, Path]) -> None:
    record = TrainingRecord.model_validate_json((trained[1] / "training.json").read_bytes())
    assert record.compute.precision in ("fp32", "bf16")
    assert (record.micro_batch, record.shrunk, record.skipped) == (2, (), ())
    assert [world.world_size for world in record.worlds] == [1]
    assert record.resolved["optimizer"] == "AdamW"
    assert record.waiting_for_data is not None and 0 < record.waiting_for_data < 1


def test_nothing_is_written_outside_the_home_and_the_outputs(trained: tuple[Workspace, Path]) -> None:
    workspace, _ = trained
    assert {path.name for path in workspace.root.iterdir()} <= {
        "again",
        "config",
        "home",
        "inputs",
        "out",
        "published",
        "source",
    }
    assert sorted(path.suffix for path in (workspace.root / "source").iterdir()) == [".png"] * len(SPLIT)
    assert sorted(path.name for path in (workspace.root / "home").iterdir()) == ["checkpoints", "prepared", "tensorboard"]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_equal_inputs_give_equal_weights_whatever_the_workers(
    tmp_path: Path, trained: tuple[Workspace, Path], num_workers: int
) -> None:
    workspace = make_workspace(tmp_path)
    workspace = replace(workspace, settings=workspace.settings.model_copy(update={"num_workers": num_workers}))
    out = run(make_params(epochs=2, close_mosaic_epochs=1), workspace)
    assert sha256_file(out / "best.pt") == sha256_file(trained[1] / "best.pt")


def preempt(*_: object) -> None:
    raise Preempted("asked to stop; it was the spot market")


def test_colours_left_to_the_device_train_alike(
    tmp_path: Path, trained: tuple[Workspace, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        job, "choose_compute", lambda *given: choose_compute(*given).model_copy(update={"colours_on_device": True})
    )
    given: list[bool] = []

    def applied(levels: torch.Tensor, gains: torch.Tensor) -> torch.Tensor:
        given.append(bool(gains.any()))
        return apply_hsv_gains(levels, gains)

    monkeypatch.setattr(images, "apply_hsv_gains", applied)
    out = run(make_params(epochs=2, close_mosaic_epochs=1), make_workspace(tmp_path))
    assert TrainingRecord.model_validate_json((out / "training.json").read_bytes()).compute.colours_on_device
    ours, theirs = (history(each)[0]["train/cls_loss"] for each in (out, trained[1]))
    assert float(ours) == pytest.approx(float(theirs), rel=0.02)
    assert any(given), "the device had colours to change"


def test_a_stop_ends_as_the_handler_in_force_says_and_the_next_run_goes_on(
    tmp_path: Path, trained: tuple[Workspace, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def heard_in_epoch_2(display: Display, epoch: int, *rest: object) -> None:
        if epoch == 2:
            signal.raise_signal(signal.SIGTERM)

    params, workspace = make_params(epochs=2, close_mosaic_epochs=1), make_workspace(tmp_path)
    before = signal.signal(signal.SIGTERM, preempt)
    with monkeypatch.context() as patched:
        patched.setattr(Display, "batch_done", heard_in_epoch_2)
        with pytest.raises(Preempted, match="it was the spot market"):
            run(params, workspace)
    assert signal.signal(signal.SIGTERM, before) is preempt
    out = run(params, workspace)
    assert [row["epoch"] for row in history(out)] == ["1", "2"]
    assert sha256_file(out / "best.pt") == sha256_file(trained[1] / "best.pt")


def test_a_killed_stage_goes_on_where_it_was(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    sections = "prepare: {image_size: 64}\ntrain: {base: yolo11n.yaml, epochs: 3, global_batch: 2}\n"
    (tmp_path / "params.yaml").write_text("detectors: [tiny]\n")
    (tmp_path / "detectors" / "tiny").mkdir(parents=True)
    (tmp_path / "detectors" / "tiny" / "params.yaml").write_text(sections + "data: {}\nevaluate: {}\ngate: {}\nexport: {}\n")
    environment = os.environ | {
        "NIGHTOWL_HOME": str(tmp_path / "home"),
        "NIGHTOWL_SOURCES__TINY": str(tmp_path / "source"),
        "NIGHTOWL_DEVICE": "cpu",
    }
    command = [sys.executable, "-m", "nightowl.stages.train", "tiny"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = [line for line in iter(process.stderr.readline, "") if _kill_after_epoch_2(process, line)]
    assert process.returncode == -signal.SIGKILL, said
    assert not workspace.out("train").exists()
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "going on from epoch " in done.stderr
    assert [row["epoch"] for row in history(workspace.out("train"))] == ["1", "2", "3"]


def _kill_after_epoch_2(process: subprocess.Popen[str], line: str) -> bool:
    if line.startswith("epoch 2/"):
        process.kill()
    return True


def test_a_device_that_is_not_there_is_said(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    settings = workspace.settings.model_copy(update={"device": "64"})
    with pytest.raises(SettingsError, match=r"device: 64: expected one of the \d+ CUDA devices here"):
        run(make_params(), replace(workspace, settings=settings))


def test_other_classes_than_the_base_weights_knew_are_learnt_anew_and_it_tells_so(
    tmp_path: Path, trained: tuple[Workspace, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    sha256 = sha256_file(trained[1] / "best.pt")
    workspace = make_workspace(tmp_path, BaseWeights(kind="champion", name="champion", sha256=sha256))
    BlobStore(tmp_path / "home" / "blobs").put(trained[1] / "best.pt")
    manifest = Manifest(("one",), tuple(_only_class_0(workspace)), "as given")
    write_manifest(workspace.dataset, manifest)
    out = run(make_params(base="champion"), workspace)
    record = ModelRecord.model_validate_json((out / "model.json").read_bytes())
    assert (record.base, record.base_sha256, record.classes) == ("champion", sha256, ("one",))
    said = capfd.readouterr()
    assert said.out == ""
    lines = [line for line in said.err.splitlines() if line.startswith(("train:", "epoch "))]
    first, note, epoch = lines
    assert first == "train: 4 images, 1 epochs, AdamW lr 0.001"
    assert note == "train: the base weights know 2 classes, the data 1: what tells classes apart is learnt anew"
    assert epoch.startswith("epoch 1/1  box ") and "val mAP50 " in epoch and epoch.endswith("ETA 0:00")


def test_yolo26_is_validated_and_delivered_with_its_nms_free_head(tmp_path: Path) -> None:
    base = RANDOM.model_copy(update={"name": "yolo26n.yaml"})
    out = run(make_params(base="yolo26n.yaml"), make_workspace(tmp_path, base))
    record = ModelRecord.model_validate_json((out / "model.json").read_bytes())
    assert (record.architecture, record.head) == ("yolo26n.yaml", "end2end")
    with torch.inference_mode():
        output = yolo.load_torch_model(out / "best.pt", record.weights_sha256)(torch.zeros(1, 3, 64, 64))
    assert output[0].shape[0] == 1 and output[0].shape[2] == 6


@pytest.mark.parametrize(
    ("prepare", "error", "message"),
    [
        (
            lambda w: w.base.unlink(),
            WeightsError,
            r"base\.json: no pinned base weights; pin the inputs first: nightowl inputs pin",
        ),
        (lambda w: w.base.write_text("{}"), WeightsError, r"base\.json: not a record of base weights"),
        (lambda w: w.dataset.unlink(), DataError, r"dataset\.jsonl: no such manifest"),
        (
            lambda w: write_record(w.base, BaseWeights(kind="file", name="a.pt", sha256="0" * 64)),
            WeightsError,
            r"base weights a\.pt .* is not there; pin the inputs again",
        ),
        (lambda w: (w.root / "source" / "5.png").unlink(), DataError, r"5\.png: pinned in the manifest, but cannot be read"),
    ],
)
def test_what_cannot_be_trained_is_said_before_anything_is(
    tmp_path: Path, prepare: Callable[[Workspace], None], error: type[Exception], message: str
) -> None:
    workspace = make_workspace(tmp_path)
    prepare(workspace)
    with pytest.raises(error, match=message):
        run(make_params(), workspace)


@pytest.mark.parametrize(("number", "split"), [(0, "train"), (4, "val")])
def test_a_copy_of_a_golden_image_is_refused_by_name_before_anything_is_trained(
    tmp_path: Path, number: int, split: str
) -> None:
    workspace = make_workspace(tmp_path)
    golden, copy = GoldenImage("a" * 64, "golden.png"), sha256_file(tmp_path / "source" / f"{number}.png")
    write_atomic(workspace.golden, golden_text([golden]))
    with pytest.raises(DataError, match=r"golden\.png: is golden, but prepare did not know it"):
        run(make_params(), workspace)
    write_atomic(workspace.barred, golden_text([golden, GoldenImage(copy, "copy.png")]))
    with pytest.raises(DataError, match=rf"{number}\.png: is golden or a copy of a golden image, .* but is in {split}"):
        run(make_params(), workspace)
    assert not (tmp_path / "published" / "best.pt").exists()


def test_a_val_split_without_boxes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="val: expected images, found none"):
        run(make_params(), make_workspace(tmp_path, splits=("train", "train")))


def _only_class_0(workspace: Workspace) -> list[Image]:
    images = read_manifest(workspace.dataset).images
    return [
        Image(i.path, i.sha256, i.num_bytes, i.width, i.height, i.split, tuple(b._replace(class_id=0) for b in i.boxes))
        for i in images
    ]
