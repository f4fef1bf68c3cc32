import hashlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from nightowl.data.blobs import BlobStore
from nightowl.errors import WeightsError
from nightowl.settings import Settings
from nightowl.training import weights
from nightowl.training.base import BaseWeights
from nightowl.training.weights import base_file, pin_base

CONTENT = b"pretend these are weights"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "weights").mkdir()
    return Settings(home=tmp_path / "home", weights=tmp_path / "weights", allow_downloads=False)


def test_a_yaml_means_random_weights_and_has_no_digest(settings: Settings) -> None:
    assert pin_base("yolo11n.yaml", settings, None) == BaseWeights(kind="yaml", name="yolo11n.yaml", sha256=None)


@pytest.mark.parametrize("named", ["weights", "relative", "absolute"])
def test_a_file_is_kept_by_its_digest_wherever_it_was_found(settings: Settings, tmp_path: Path, named: str) -> None:
    root = tmp_path / "checkout"
    folder = {"weights": tmp_path / "weights", "relative": root / "models", "absolute": tmp_path / "elsewhere"}[named]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "mine.pt"
    file.write_bytes(CONTENT)
    base = {"weights": "mine.pt", "relative": "models/mine.pt", "absolute": str(file)}[named]
    pinned = pin_base(base, settings, None, root)
    assert pinned == BaseWeights(kind="file", name="mine.pt", sha256=SHA256)
    file.unlink()
    assert (found := base_file(pinned, settings)) and found.read_bytes() == CONTENT


def test_the_champion_is_pinned_by_its_digest(settings: Settings) -> None:
    assert pin_base("champion", settings, SHA256) == BaseWeights(kind="champion", name="champion", sha256=SHA256)


def test_without_a_champion_it_says_what_to_set_for_the_first_night(settings: Settings) -> None:
    with pytest.raises(WeightsError, match=r"no champion yet; for its first night set train.base: yolo11n.pt .* yolo11n.yaml"):
        pin_base("champion", settings, None)


def test_missing_weights_say_where_they_were_looked_for_and_what_to_do(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(WeightsError) as caught:
        pin_base("yolo26s.pt", settings, None, tmp_path)
    message = str(caught.value)
    assert f"not at {tmp_path / 'weights' / 'yolo26s.pt'} and {tmp_path / 'yolo26s.pt'}" in message
    assert "downloads are off" in message
    assert message.endswith("or set train.base: yolo26s.yaml to start from random weights")
    assert not (tmp_path / "home").exists()


def test_a_path_is_not_downloaded(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"it is a path, so it was not downloaded.* train.base: yolo11n.yaml"):
        pin_base("models/mine.pt", settings.model_copy(update={"allow_downloads": True}), None, tmp_path)


def test_a_published_name_is_downloaded_where_settings_allow_it(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(name: str, folder: Path) -> Path:
        (folder / name).write_bytes(CONTENT)
        return folder / name

    _fake_yolo(monkeypatch, download)
    monkeypatch.setattr(weights, "_require_publisher", lambda: None)
    pinned = pin_base("yolo11n.pt", settings.model_copy(update={"allow_downloads": True}), None)
    assert pinned.sha256 == SHA256


def test_a_failed_download_is_said_and_nothing_takes_its_place(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(name: str, folder: Path) -> Path:
        raise WeightsError("the download failed: no route to host")

    _fake_yolo(monkeypatch, download)
    monkeypatch.setattr(weights, "_require_publisher", lambda: None)
    with pytest.raises(WeightsError, match=r"could not be had: .*the download failed: no route to host\. Put the file into"):
        pin_base("yolo11n.pt", settings.model_copy(update={"allow_downloads": True}), None)


@pytest.mark.parametrize(
    ("base", "instead"),
    [
        ("yolo11n-seg.pt", "yolo11n.pt"),
        ("yolov8s-obb.pt", "yolov8s.pt"),
        ("yolo11m-pose.pt", "yolo11m.pt"),
        ("yolo26n-cls.pt", "yolo26n.pt"),
        ("yolo26n-sem-ade20k.pt", "yolo26n.pt"),
        ("yolo26n-depth.pt", "yolo26n.pt"),
        ("yolo11n-seg.yaml", "yolo11n.yaml"),
    ],
)
def test_weights_for_another_task_are_refused_by_name(settings: Settings, base: str, instead: str) -> None:
    with pytest.raises(WeightsError, match=rf"{base}: nightowl trains detectors only.*use {instead}$"):
        pin_base(base, settings, None)


def test_anything_else_is_refused(settings: Settings) -> None:
    with pytest.raises(WeightsError, match=r"model\.onnx: expected NAME\.yaml"):
        pin_base("model.onnx", settings, None)


def test_altered_weights_are_refused_when_training_begins(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "weights" / "mine.pt").write_bytes(CONTENT)
    pinned = pin_base("mine.pt", settings, None)
    blob = BlobStore(tmp_path / "home" / "blobs").path_of(SHA256)
    blob.chmod(0o644)
    blob.write_bytes(b"something else")
    with pytest.raises(WeightsError, match=r"base weights mine\.pt was altered"):
        base_file(pinned, settings)


def test_a_yaml_has_no_file(settings: Settings) -> None:
    assert base_file(BaseWeights(kind="yaml", name="yolo11n.yaml", sha256=None), settings) is None


def test_without_a_network_no_download_is_begun(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(address: tuple[str, int], timeout: float) -> None:
        raise OSError("no route to host")

    def download(name: str, folder: Path) -> Path:
        raise AssertionError("begun")

    _fake_yolo(monkeypatch, download)
    monkeypatch.setattr(weights, "getproxies", dict)
    monkeypatch.setattr("socket.create_connection", unreachable)
    with pytest.raises(WeightsError, match=r"github\.com cannot be reached \(no route to host\)\. Put the file into"):
        pin_base("yolo11n.pt", settings.model_copy(update={"allow_downloads": True}), None)


@pytest.mark.parametrize(
    ("base", "downloads", "expected"),
    [
        ("yolo11n.yaml", False, None),
        ("champion", False, None),
        ("mine.pt", False, None),
        ("yolo11n.pt", True, "the first night downloads it"),
        ("yolo11n.pt", False, "is not downloaded: put it there before the first night, or set train.base: yolo11n.yaml"),
        ("models/yolo11n.pt", True, "is not downloaded: put it there"),
    ],
)
def test_weights_that_are_not_there_yet_are_told_beforehand(
    settings: Settings, tmp_path: Path, base: str, downloads: bool, expected: str | None
) -> None:
    (tmp_path / "weights" / "mine.pt").write_bytes(CONTENT)
    told = weights.missing_base(base, settings.model_copy(update={"allow_downloads": downloads}), tmp_path)
    assert told == expected if expected is None else told is not None and expected in told


def _fake_yolo(monkeypatch: pytest.MonkeyPatch, download: object) -> None:
    module = ModuleType("nightowl.training.yolo")
    module.download_weights = download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nightowl.training.yolo", module)
