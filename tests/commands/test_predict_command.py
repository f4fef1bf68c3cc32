"""`nightowl predict` from the command line: what it prints, writes, refuses, and exits with."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from nightowl.commands.predict import predict, resolve_model
from nightowl.errors import RegistryError, UserError, WeightsError
from nightowl.export.onnx import export_onnx
from nightowl.registry.sums import write_sums
from tests.tiny import tiny_card, tiny_module

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(predict)


@pytest.fixture(scope="module")
def onnx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    export_onnx(tiny_module(), tiny_card(), 17, path)
    return path


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "board.png"
    squares = np.random.default_rng(0).integers(0, 256, (6, 6, 3), np.uint8)
    cv2.imwrite(str(path), cv2.resize(squares, (120, 80), interpolation=cv2.INTER_NEAREST))
    return path


def test_it_prints_writes_and_draws(onnx: Path, image: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(image), "--model", str(onnx), "--output", str(tmp_path / "out")])
    assert result.exit_code == 0
    assert result.output.startswith(f"{image}: ")
    assert json.loads((tmp_path / "out" / "predictions.json").read_text())["images"][0]["image"] == str(image)
    assert (tmp_path / "out" / "board.png.detections.jpg").exists()


def test_an_unreadable_image_exits_2_after_the_others(onnx: Path, image: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no image")
    result = CliRunner().invoke(app, [str(broken), str(image), "--model", str(onnx), "--output", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "1 of 2 images could not be read" in result.output
    assert (tmp_path / "out" / "board.png.detections.jpg").exists()


def test_paths_are_checked_before_the_model_is_loaded(image: Path, tmp_path: Path) -> None:
    missing = [str(tmp_path / "a.png"), str(tmp_path / "b.png")]
    result = CliRunner().invoke(app, [*missing, "--model", "none.onnx", "--output", str(image)])
    assert isinstance(result.exception, UserError)
    lines = str(result.exception).splitlines()
    assert [line.split(": ")[1].split(";")[0] for line in lines] == [
        "no such image",
        "no such image",
        "expected a folder, found a file",
    ]


def test_a_model_that_is_not_there_leaves_nothing_behind(image: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(image), "--model", "none.onnx", "--output", str(tmp_path / "out")])
    assert isinstance(result.exception, WeightsError)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("model", ["Demo", "demo@", "@champion", "../x@1", "demo@1/2", "best.pt"])
def test_a_name_of_another_form_is_refused(model: str) -> None:
    with pytest.raises(UserError, match="expected NAME@champion, NAME@7"):
        resolve_model(model)


def test_a_bundles_folder_names_the_model_in_it(onnx: Path, tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text("{}")
    (tmp_path / "model.onnx").write_bytes(onnx.read_bytes())
    assert resolve_model(str(tmp_path)) == (tmp_path / "model.onnx", str(tmp_path / "model.onnx"))
    with pytest.raises(UserError, match=r"this bundle has no model\.xml"):
        resolve_model(str(tmp_path), "openvino")


def test_a_model_in_a_bundle_that_is_not_the_one_listed_there_is_refused(onnx: Path, image: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "record.json").write_text("{}")
    (bundle / "model.onnx").write_bytes(onnx.read_bytes())
    write_sums(bundle)
    assert CliRunner().invoke(app, [str(image), "--model", str(bundle), "--output", str(tmp_path / "out")]).exit_code == 0
    content = bytearray(onnx.read_bytes())
    content[len(content) // 2] ^= 1
    (bundle / "model.onnx").write_bytes(content)
    for model in (bundle, bundle / "model.onnx"):
        result = CliRunner().invoke(app, [str(image), "--model", str(model), "--output", str(tmp_path / "out")])
        assert isinstance(result.exception, RegistryError) and "damaged or exchanged" in str(result.exception)
