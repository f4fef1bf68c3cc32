"""Formats and precisions in order: what fails gives way to the next, is left out, or refuses the version, and says why."""

from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from nightowl.data.manifest import Manifest
from nightowl.errors import StageFailed
from nightowl.evaluation.runners import OnnxRunner
from nightowl.export import formats
from nightowl.export.formats import try_onnx, try_openvino
from nightowl.export.onnx import write_model
from nightowl.export.openvino import convert
from nightowl.export.parity import FormatParity
from nightowl.export.trained import Trained
from nightowl.export_params import FP16, INT8, ExportParams, LimitsParams, Precision
from nightowl.files import sha256_file
from tests.export.seeded import a_trained_model, altered

STRICT = LimitsParams(
    int8=INT8.model_copy(update={"max_path_score_gap": 0.0}), fp16=FP16.model_copy(update={"max_score_gap": 0.0})
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return a_trained_model(tmp_path_factory.mktemp("seeded"))


def precision_in(path: Path) -> str:
    return OnnxRunner(path).card.model.precision


def test_precisions_that_are_refused_fall_back_to_fp32_and_the_record_says_why(trained: Trained, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    attempts = [each.attempt for each in try_onnx(ExportParams(precisions=("int8", "fp16"), limits=STRICT), trained, path)]
    assert [(each.precision, each.passed) for each in attempts] == [("int8", False), ("fp16", False), ("fp32", True)]
    assert attempts[0].refused[0].startswith("largest score gap, from file to box: ")
    assert attempts[1].refused[0].startswith("largest score gap: ") and attempts[2].refused == ()
    assert attempts[2].sha256 == sha256_file(path) and precision_in(path) == "fp32"


def test_the_first_that_passes_is_taken(trained: Trained, tmp_path: Path) -> None:
    (taken,) = try_onnx(ExportParams(precisions=("int8", "fp16")), trained, tmp_path / "m.onnx")
    assert (taken.attempt.precision, precision_in(tmp_path / "m.onnx")) == ("int8", "int8")


def test_a_precision_that_is_required_is_not_replaced(trained: Trained, tmp_path: Path) -> None:
    params = ExportParams(precisions=("int8",), fall_back_to_fp32=False, limits=STRICT)
    (tried,) = try_onnx(params, trained, tmp_path / "m.onnx")
    assert not tried.attempt.passed and precision_in(tmp_path / "m.onnx") == "int8"


def test_a_precision_that_cannot_be_made_gives_way_like_one_that_fails(trained: Trained, tmp_path: Path) -> None:
    tests_only = Manifest(trained.dataset.classes, tuple(trained.dataset.of("test")), "given")
    bare = replace(trained, dataset=tests_only)
    first, second = (each.attempt for each in try_onnx(ExportParams(precisions=("int8",)), bare, tmp_path / "m.onnx"))
    assert (first.passed, first.sha256, first.num_bytes, second.passed) == (False, None, None, True)
    assert "the file is made: could not be measured (export: expected images to calibrate INT8 on" in first.refused[0]
    with pytest.raises(StageFailed, match="expected images to calibrate INT8 on"):
        try_onnx(ExportParams(precisions=("int8",), fall_back_to_fp32=False), bare, tmp_path / "none.onnx")


def openvino(trained: Trained, folder: Path, *precisions: Precision, required: bool = False) -> FormatParity:
    pytest.importorskip("openvino")
    params = ExportParams(
        precisions=precisions, formats=("onnx", "openvino"), required_formats=("openvino",) if required else ()
    )
    tried = try_onnx(params, trained, folder / "model.onnx")
    return try_openvino(params, trained, folder / "model.onnx", tried[-1].attempt.precision, folder / "model.xml")


def says_something_else_in(monkeypatch: pytest.MonkeyPatch, *precisions: Precision) -> None:
    """OpenVINO's form of these takes blue for red."""

    def other(source: Path, xml: Path) -> None:
        card = OnnxRunner(source).card
        if card.model.precision in precisions:
            write_model(altered(lambda weights: weights[:, ::-1]), card, xml.with_name("other.onnx"))
            source = xml.with_name("other.onnx")
        convert(source, xml)

    monkeypatch.setattr(formats, "convert", other)


def test_openvino_begins_where_the_onnx_ended_and_ships_with_its_digests(trained: Trained, tmp_path: Path) -> None:
    found = openvino(trained, tmp_path, "int8")
    assert [(each.precision, each.passed) for each in found.attempts] == [("int8", True)]
    assert found.shipped == found.attempts[0]
    assert found.files == {name: sha256_file(tmp_path / name) for name in ("model.xml", "model.bin")}


def test_openvino_goes_on_to_a_later_precision_than_the_onnx(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says_something_else_in(monkeypatch, "int8")
    found = openvino(trained, tmp_path, "int8", "fp16")
    assert [(each.precision, each.passed) for each in found.attempts] == [("int8", False), ("fp16", True)]
    assert any("from file to box" in line for line in found.attempts[0].refused)
    assert precision_in(tmp_path / "model.onnx") == "int8", "the ONNX is not held back"


@pytest.mark.parametrize("required", [False, True])
def test_openvino_that_keeps_its_limits_in_no_precision_is_left_out(
    required: bool, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says_something_else_in(monkeypatch, "fp32")
    found = openvino(trained, tmp_path, "fp32", required=required)
    assert (found.shipped, found.files, found.required) == (None, {}, required)
    assert found.attempts[-1].refused
    assert not (tmp_path / "model.xml").exists() and not (tmp_path / "model.bin").exists()


def test_a_graph_that_openvino_cannot_read_or_run_has_failed_and_ends_no_stage(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, xml: Path) -> None:
        raise StageFailed("export: OpenVINO cannot read model.onnx: no such operator")

    def fixed(source: Path, xml: Path) -> None:
        model = onnx.load(source)
        for end in (*model.graph.input, *model.graph.output):
            end.type.tensor_type.shape.dim[0].dim_value = 1
        onnx.save(model, xml.with_name("fixed.onnx"))
        convert(xml.with_name("fixed.onnx"), xml)

    monkeypatch.setattr(formats, "convert", refuse)
    assert "no such operator" in openvino(trained, tmp_path, "fp32").attempts[0].refused[0]
    monkeypatch.setattr(formats, "convert", fixed)
    assert "OpenVINO cannot run it on (4, 3, 64, 64)" in " ".join(openvino(trained, tmp_path, "fp32").attempts[0].refused)
