"""A registered version asked for by name, alias and format: engines built and listed, and `nightowl predict` on all of them."""

import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

from nightowl.commands.engine import app as engine_app
from nightowl.commands.predict import predict
from nightowl.data.images import load_bgr
from nightowl.errors import UserError
from nightowl.evaluation import predict as predict_module
from nightowl.evaluation.detect import Source
from nightowl.export import whole_path
from nightowl.export.artefact import open_artefact
from nightowl.export.onnx import export_onnx
from nightowl.export.openvino import convert
from nightowl.export_params import ExportParams
from nightowl.params import Params
from nightowl.registry.store import Registry
from tests.bundles import Made, new_registry, registered
from tests.export.stand_in_gpu import GPU, KEY, pretend
from tests.tiny import tiny_card, tiny_module

app = typer.Typer()
app.add_typer(engine_app, name="engine")
app.command()(predict)

ALL = Params(export=ExportParams(formats=("onnx", "openvino", "tensorrt")))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny detector as ONNX and in OpenVINO's form, and an image for it."""
    pytest.importorskip("openvino")
    folder = tmp_path_factory.mktemp("files")
    export_onnx(tiny_module(), tiny_card(), 17, folder / "model.onnx")
    convert(folder / "model.onnx", folder / "model.xml")
    squares = np.random.default_rng(0).integers(0, 256, (6, 6, 3), np.uint8)
    cv2.imwrite(str(folder / "board.png"), cv2.resize(squares, (96, 96), interpolation=cv2.INTER_NEAREST))
    return folder


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """An empty registry, and a checkout around the current folder that uses it."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "checkout")], check=True)
    (tmp_path / "checkout" / "params.yaml").write_text("detectors: [demo]\n")
    (tmp_path / "checkout" / "dvc.yaml").write_text("stages: {}\n")
    monkeypatch.setenv("NIGHTOWL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "checkout")
    return new_registry(tmp_path / "home")


@pytest.fixture
def champion(registry: Registry, files: Path, tmp_path: Path) -> None:
    """Version 1 of demo, the champion, with all formats asked for; version 2 has the ONNX alone."""
    onnx, xml = (files / "model.onnx").read_bytes(), (files / "model.xml").read_bytes()
    weights = (files / "model.bin").read_bytes()
    whole = Made(night="night-1", onnx=onnx, openvino=xml, openvino_weights=weights, params=ALL)
    refused = Made(night="night-2", weights=b"two", onnx=b"another", openvino_refused="box gap: 3", params=ALL)
    registered(registry, tmp_path, whole, refused)
    registry.promote("demo", "1", "first", by="a test")


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def found_by(files: Path, folder: Path, *arguments: str) -> list[tuple[str, list[float]]]:
    """What `nightowl predict` finds on the image."""
    assert call("predict", str(files / "board.png"), "--output", str(folder), *arguments).exit_code == 0
    (image,) = json.loads((folder / "predictions.json").read_text())["images"]
    return [(each["class_name"], [each["confidence"], *each["box_xyxy"]]) for each in image["detections"]]


@pytest.mark.usefixtures("champion")
def test_an_engine_is_pending_then_built_once_listed_and_used(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("engine", "list", "demo").output == "demo\t2\tengine pending\ndemo\t1\tengine pending\n"
    pretend(monkeypatch.setattr)
    with pytest.raises(UserError, match=rf"engine pending for this machine \({KEY}\); there are: none; build it: nightowl"):
        call("predict", str(files / "board.png"), "--model", "demo@champion", "--format", "tensorrt")
    first = call("engine", "build", "demo").output
    assert first.startswith(f"demo version 1: engine for {GPU} ({KEY}), ")
    assert "held against the ONNX on coloured patches alone: " in first
    assert call("engine", "build", "demo@champion").output == first == call("engine", "build", "demo@1").output
    pending, listed = (line.split("\t") for line in call("engine", "list").output.splitlines())
    assert listed[:4] == ["demo", "1", GPU, KEY]
    assert pending == ["demo", "2", "engine pending"]


@pytest.mark.usefixtures("champion")
def test_without_tensorrt_or_with_another_form_of_name_nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(UserError, match="TensorRT is not installed here"):
        call("engine", "build", "demo")
    with pytest.raises(UserError, match=r"expected NAME, NAME@champion or NAME@7"):
        call("engine", "build", "../demo@x")


@pytest.mark.usefixtures("champion")
def test_every_format_of_a_version_finds_the_same_by_number_and_by_alias(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch.setattr)
    call("engine", "build", "demo")
    expected = found_by(files, tmp_path / "file", "--model", str(files / "model.onnx"))
    assert expected
    for number, asked in enumerate(("demo@1", "demo@champion")):
        for form in ("onnx", "openvino", "tensorrt"):
            found = found_by(files, tmp_path / f"{number}-{form}", "--model", asked, "--format", form)
            assert [name for name, _ in found] == [name for name, _ in expected], (asked, form)
            assert np.abs(np.array([row for _, row in found]) - [row for _, row in expected]).max() < 0.1, (asked, form)


@pytest.mark.usefixtures("champion")
def test_a_format_that_a_version_has_not_is_refused_with_the_reason(files: Path) -> None:
    image = str(files / "board.png")
    with pytest.raises(UserError, match=r"version 2 has no openvino: .* was left out \(int8: .*; fp32: box gap: 3\)"):
        call("predict", image, "--model", "demo@2", "--format", "openvino")
    with pytest.raises(UserError, match="--format coreml: expected one of onnx, openvino, tensorrt"):
        call("predict", image, "--model", "demo@2", "--format", "coreml")
    with pytest.raises(UserError, match=r"--format openvino: x\.onnx is another"):
        call("predict", image, "--model", "x.onnx", "--format", "openvino")


def test_what_parity_measures_is_the_very_function_that_predict_calls(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert whole_path.look is predict_module.look
    seen: list[str] = []
    honest = predict_module.look

    def watched(runner, name, image_bgr, thresholds):  # type: ignore[no-untyped-def]
        seen.append(f"{name} {type(runner).__name__} {image_bgr.shape}")
        return honest(runner, name, image_bgr, thresholds)

    for module in (predict_module, whole_path):
        monkeypatch.setattr(module, "look", watched)
    found_by(files, tmp_path / "out", "--model", str(files / "model.xml"))
    image = files / "board.png"
    whole_path.look_at_all(open_artefact(files / "model.xml"), [Source(str(image), lambda: load_bgr(image))])
    assert seen == [f"{image} OpenVinoRunner (96, 96, 3)"] * 2
