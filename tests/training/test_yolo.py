import copy
import io
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from nightowl.errors import WeightsError
from nightowl.files import sha256_file
from nightowl.training import yolo
from tests.tiny import CLASSES, tiny_module


class Harm:
    """What a hostile pickle would run when opened."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> object:
        return Path.touch, (self.target,)


def a_checkpoint(path: Path, **parts: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(
        {"epoch": 0, "model": None, "ema": tiny_module(), "train_args": {"imgsz": 96, "data": "/home/me"}, **parts}, path
    )
    return path


def publish(target: Path, **train_args: object) -> yolo.Delivered:
    module = tiny_module()
    halves = {name: value.half() if value.is_floating_point() else value for name, value in module.state_dict().items()}
    return yolo.deliver({**module.yaml, "yaml_file": "yolo11n.yaml"}, CLASSES, halves, target, train_args)  # type: ignore[dict-item]


@pytest.mark.parametrize("name", ["best.pt", "o'brien's.pt", "yolov5n.pt", "Blüte 七.pt"])
def test_delivered_weights_open_whatever_the_file_is_called(tmp_path: Path, name: str) -> None:
    delivered = publish(tmp_path / name, imgsz=96)
    assert delivered == yolo.Delivered("yolo11n.yaml", "raw", sha256_file(tmp_path / name))
    module = yolo.load_torch_model(tmp_path / name, delivered.sha256)
    torch.testing.assert_close(
        dict(module.named_parameters())["model.0.conv.weight"],
        dict(tiny_module().named_parameters())["model.0.conv.weight"].half().float(),
    )


def test_equal_weights_are_equal_files(tmp_path: Path) -> None:
    one = publish(tmp_path / "a.pt", imgsz=96, data="/home/me", device="0")
    two = publish(tmp_path / "b.pt", imgsz=96, data="/mnt", device="cpu")
    assert one.sha256 == two.sha256


def test_weights_of_another_digest_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "best.pt"
    torch.save({"model": Harm(tmp_path / "harmed")}, path)
    with pytest.raises(WeightsError, match=r"best\.pt: expected weights of sha256 000000000000…, found"):
        yolo.load_torch_model(path, "0" * 64)
    assert not (tmp_path / "harmed").exists()


def test_weights_that_would_run_code_are_refused_even_with_the_right_digest(tmp_path: Path) -> None:
    path = tmp_path / "best.pt"
    torch.save({"model": Harm(tmp_path / "harmed")}, path)
    with pytest.raises(WeightsError, match=r"best\.pt: expected weights that ultralytics can open, got TypeError"):
        yolo.load_torch_model(path, sha256_file(path))
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"not a checkpoint at all", "another file"),
        ("truncated", "half a download"),
        ("a tensor", "not ultralytics'"),
        ("state", "weights without their architecture"),
        ("a layer", "a module that is no model of ultralytics"),
    ],
)
def test_what_ultralytics_cannot_open_is_said_in_a_line(tmp_path: Path, content: bytes | str, reason: str) -> None:
    path = tmp_path / "base.pt"
    buffer = io.BytesIO()
    if content == "truncated":
        path.write_bytes(a_checkpoint(tmp_path / "whole.pt").read_bytes()[:10_000])
    elif isinstance(content, str):
        parts = {"a tensor": torch.zeros(3), "a layer": {"model": torch.nn.Linear(2, 2)}}
        torch.save(parts.get(content, {"model": tiny_module().state_dict()}), buffer)
        path.write_bytes(buffer.getvalue())
    else:
        path.write_bytes(content)
    with pytest.raises(WeightsError, match=r"base\.pt: expected weights that ultralytics can open, got \w+: ") as caught:
        yolo.load_torch_model(path, sha256_file(path))
    assert "\n" not in str(caught.value), reason


def test_base_weights_that_are_no_numbers_are_refused_before_anything_is_learnt(tmp_path: Path) -> None:
    broken = copy.deepcopy(tiny_module())
    next(broken.parameters()).data[:] = float("nan")
    path = a_checkpoint(tmp_path / "base.pt", ema=broken)
    with pytest.raises(WeightsError, match=r"base\.pt: model\.0\.conv\.weight holds values that are not finite"):
        yolo._model(SimpleNamespace(base=path, classes=CLASSES), [])  # type: ignore[arg-type]


def test_absent_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"best\.pt: no such weights"):
        yolo.load_torch_model(tmp_path / "best.pt", "0" * 64)


def test_a_model_for_another_task_is_refused(tmp_path: Path) -> None:
    from ultralytics.nn.tasks import SegmentationModel

    path = a_checkpoint(tmp_path / "renamed.pt", ema=SegmentationModel("yolo11n-seg.yaml", nc=2, verbose=False))
    with pytest.raises(WeightsError, match=r"expected a detector \(head Detect or .*\), found a model with the head Segment"):
        yolo.load_torch_model(path, sha256_file(path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.pt", "ultralytics publishes no weights of that name"),
        ("yolo11n.pt", r"the download failed \(no route to host\)"),
    ],
)
def test_a_download_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    def fail(file: Path) -> str:
        raise ConnectionError("❌  no route\nto host")

    monkeypatch.setattr(yolo, "attempt_download_asset", fail)
    with pytest.raises(WeightsError, match=message):
        yolo.download_weights(name, tmp_path / "weights")
    assert not (tmp_path / "weights").exists()
