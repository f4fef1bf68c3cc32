"""Stage export: the file that ships, and whether it says what was trained."""

from pathlib import Path
from typing import Literal

import pytest

from nightowl.errors import StageFailed
from nightowl.evaluation.cost import Cost
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.runners import OnnxRunner
from nightowl.evaluation.timings import Speed
from nightowl.export import formats
from nightowl.export import speed as speed_module
from nightowl.export.onnx import export_onnx
from nightowl.export.parity import Parity
from nightowl.export_params import FP32, ExportParams, LimitsParams
from nightowl.files import sha256_file
from nightowl.params import Params
from nightowl.stages import evaluate, export
from nightowl.stages.workspace import Workspace
from tests.stages.night import PARAMS, a_night, crown, load_tiny
from tests.tiny import tiny_card, tiny_module


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed_module, "SECONDS", 0.0)


@pytest.fixture
def evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setattr(evaluate, "load_torch_model", load_tiny)
    monkeypatch.setattr(export, "load_torch_model", load_tiny)
    workspace = a_night(tmp_path)
    workspace.out("evaluate").mkdir(parents=True)
    evaluate.run(PARAMS, workspace, workspace.out("evaluate"))
    return workspace


def run(workspace: Workspace, params: Params = PARAMS) -> Parity:
    out = workspace.out("export")
    out.mkdir(parents=True)
    export.run(params, workspace, out)
    return Parity.model_validate_json(workspace.parity.read_bytes())


def test_a_faithful_export_passes_with_every_figure(evaluated: Workspace) -> None:
    parity = run(evaluated)
    assert parity.passed
    assert all(check.figure is not None and check.limit is not None and check.figure <= check.limit for check in parity.checks)
    assert (parity.precision, len(parity.attempts), parity.calibration) == ("fp32", 1, ())
    assert parity.onnx_sha256 == sha256_file(evaluated.onnx)
    assert parity.weights_sha256 == sha256_file(evaluated.weights)
    assert parity.num_images == 6
    speed = Speed.model_validate_json(evaluated.speed.read_bytes())
    assert [artefact.name for artefact in speed.artefacts] == [".pt", "onnx"]
    cost = Cost.model_validate_json(evaluated.cost.read_bytes())
    (onnx,) = cost.artefacts
    assert (onnx.name, onnx.required, cost.champion_seconds_per_image) == ("onnx", True, None)
    assert onnx.num_bytes == evaluated.onnx.stat().st_size
    assert onnx.seconds_per_image == speed.artefacts[1].at(1).p50_seconds <= onnx.p99_seconds_per_image


def test_the_champion_is_timed_beside_the_candidate(evaluated: Workspace, tmp_path: Path) -> None:
    export_onnx(tiny_module(), tiny_card(), 17, tmp_path / "champion.onnx")
    crown(evaluated, tmp_path / "champion.onnx")
    run(evaluated)
    cost = Cost.model_validate_json(evaluated.cost.read_bytes())
    assert cost.champion_seconds_per_image is not None and cost.champion_seconds_per_image > 0


@pytest.mark.parametrize("required", [(), ("openvino",)])
def test_openvino_is_made_measured_by_the_same_checks_and_timed(
    required: tuple[Literal["openvino"], ...], evaluated: Workspace
) -> None:
    pytest.importorskip("openvino")
    asked = ExportParams(formats=("onnx", "openvino"), required_formats=required)
    parity = run(evaluated, PARAMS.model_copy(update={"export": asked}))
    assert parity.passed, parity.checks
    (other,) = parity.others
    assert other.shipped is not None and parity.checks == parity.attempts[0].checks
    assert [check.rule for check in other.shipped.checks] == [check.rule for check in parity.checks]
    assert other.files == {name: sha256_file(evaluated.out("export") / name) for name in ("model.xml", "model.bin")}
    speed = Speed.model_validate_json(evaluated.speed.read_bytes())
    assert [artefact.name for artefact in speed.artefacts] == [".pt", "onnx", "openvino"]
    cost = Cost.model_validate_json(evaluated.cost.read_bytes()).artefacts[1]
    assert (cost.name, cost.required, cost.seconds_per_image) == (
        "openvino",
        bool(required),
        speed.artefacts[2].at(1).p50_seconds,
    )
    assert cost.num_bytes == sum(path.stat().st_size for path in evaluated.out("export").glob("model.[xb]*"))


def test_the_file_carries_the_operating_point_and_the_limits(evaluated: Workspace) -> None:
    run(evaluated)
    card = OnnxRunner(evaluated.onnx).card
    assert card.operating == OperatingPoint.model_validate_json(evaluated.operating.read_bytes())
    assert card.limits == PARAMS.evaluate
    assert card.model.weights_sha256 == sha256_file(evaluated.weights)


def test_an_export_beyond_its_limits_is_a_result(evaluated: Workspace) -> None:
    strict = FP32.model_copy(update={"max_score_gap": 0.0})
    parity = run(evaluated, PARAMS.model_copy(update={"export": ExportParams(limits=LimitsParams(fp32=strict))}))
    assert not parity.passed
    assert [check.rule for check in parity.checks if not check.passed] == ["largest score gap"]
    assert "largest score gap" in parity.attempts[0].refused[0]
    assert evaluated.onnx.exists()


@pytest.mark.parametrize(("required", "passed"), [((), True), (("openvino",), False)])
def test_a_format_that_fails_is_left_out_and_refuses_the_version_only_where_it_is_required(
    required: tuple[Literal["openvino"], ...], passed: bool, evaluated: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, xml: Path) -> None:
        raise StageFailed("export: OpenVINO cannot read it")

    monkeypatch.setattr(formats, "convert", refuse)
    params = ExportParams(formats=("onnx", "openvino"), required_formats=required)
    parity = run(evaluated, PARAMS.model_copy(update={"export": params}))
    assert (parity.passed, parity.attempts[-1].passed, parity.others[0].files) == (passed, True, {})
    assert not evaluated.openvino.exists()
    speed = Speed.model_validate_json(evaluated.speed.read_bytes())
    assert [artefact.name for artefact in speed.artefacts] == [".pt", "onnx"]
