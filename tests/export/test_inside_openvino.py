"""OpenVINO's form with a fault seeded in it alone: it is refused, and the first layer that drifts is named as for an ONNX."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from nightowl.errors import StageFailed
from nightowl.evaluation.openvino import OpenVinoRunner
from nightowl.export import openvino
from nightowl.export.attempt import hold
from nightowl.export.drift import module_outputs
from nightowl.export.graph import float_tensors, last_module
from nightowl.export.half import half
from nightowl.export.inside import inside_onnx
from nightowl.export.make import card_of
from nightowl.export.nms import with_nms
from nightowl.export.onnx import write_model
from nightowl.export.openvino import convert, inside_openvino
from nightowl.export.parity import Attempt
from nightowl.export.quantise import int8
from nightowl.export.trained import Trained
from nightowl.export_params import ExportParams, Precision
from tests.export.seeded import a_trained_model, altered, graph

pytest.importorskip("openvino", reason="the optional part `openvino` is not installed")

PLAIN, THINNED = ExportParams(), ExportParams(nms_in_graph=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return a_trained_model(tmp_path_factory.mktemp("seeded"))


def form_of(model: onnx.ModelProto, precision: Precision, trained: Trained, export: ExportParams, folder: Path) -> Path:
    """The model in OpenVINO's form, with the right card."""
    model = with_nms(model, trained.card.limits) if export.nms_in_graph else model
    write_model(model, card_of(precision, trained, export), folder / "model.onnx")
    convert(folder / "model.onnx", folder / "model.xml")
    return folder / "model.xml"


def held(
    model: onnx.ModelProto, trained: Trained, folder: Path, precision: Precision = "fp32", export: ExportParams = PLAIN
) -> Attempt:
    xml = form_of(model, precision, trained, export, folder)
    return hold(precision, trained, export, xml, OpenVinoRunner).attempt


def swapped() -> onnx.ModelProto:
    return altered(lambda weights: weights[:, ::-1])


@pytest.mark.parametrize("export", [PLAIN, THINNED], ids=["NMS outside", "NMS inside"])
@pytest.mark.parametrize(
    ("model", "precision", "module", "tensor", "why"),
    [
        (swapped, "fp32", "/model.0", "/model.0/model.0.0/Conv_output_0", "channels swapped"),
        (lambda: graph(sharpness=6.0), "fp32", "/model.1", "/model.1/Conv_output_0", "the second layer of another model"),
        (lambda: half(swapped()), "fp16", "/model.0", "/model.0/model.0.0/Conv_output_0", "channels swapped"),
    ],
)
def test_the_first_layer_of_openvinos_form_that_drifts_is_named(
    model: Callable[[], onnx.ModelProto],
    precision: Precision,
    module: str,
    tensor: str,
    why: str,
    export: ExportParams,
    trained: Trained,
    tmp_path: Path,
) -> None:
    attempt = held(model(), trained, tmp_path, precision, export)
    assert not attempt.passed and attempt.drift is not None, why
    assert (attempt.drift.module, attempt.drift.tensor) == (module, tensor), why
    assert attempt.refused[-1].startswith(f"first drifts in {module}: {tensor} differs by"), why


def test_int8_with_its_head_quantised_drifts_there_on_openvino_too(trained: Trained, tmp_path: Path) -> None:
    attempt = held(int8(graph(), iter(trained.inputs), [], 100), trained, tmp_path, "int8")
    assert attempt.drift is not None and attempt.drift.module == "/model.2"


def test_a_graph_that_was_traced_wrongly_is_known_by_what_torch_says(trained: Trained, tmp_path: Path) -> None:
    wrong = replace(trained, graph=swapped())
    attempt = held(wrong.graph, wrong, tmp_path)
    assert attempt.drift is not None and attempt.drift.module == "/model.0"


def test_where_the_form_alone_is_right_no_layer_is_named(trained: Trained, tmp_path: Path) -> None:
    xml = form_of(graph(), "fp32", trained, PLAIN, tmp_path)
    other = replace(
        trained, card=trained.card.model_copy(update={"limits": trained.card.limits.model_copy(update={"nms_iou": 0.9})})
    )
    attempt = hold("fp32", other, PLAIN, xml, OpenVinoRunner).attempt
    assert not attempt.passed and attempt.drift is None


@pytest.mark.parametrize("export", [PLAIN, THINNED], ids=["NMS outside", "NMS inside"])
@pytest.mark.parametrize(("precision", "share"), [("fp32", 1e-5), ("fp16", 0.01), ("int8", 0.1)])
def test_every_tensor_of_the_graph_is_there_by_its_name_with_the_onnxs_values(
    precision: Precision, share: float, export: ExportParams, trained: Trained, tmp_path: Path
) -> None:
    head = [last_module(graph().graph)]
    model = {"fp32": graph, "fp16": lambda: half(graph()), "int8": lambda: int8(graph(), iter(trained.inputs), head, 100)}[
        precision
    ]()
    names = float_tensors(graph())
    theirs = inside_openvino(form_of(model, precision, trained, export, tmp_path))(names, trained.inputs)
    ours = inside_onnx(graph())(names, trained.inputs)
    assert list(theirs) == names and set(module_outputs(graph()).values()) <= set(names)
    for name in names:
        assert theirs[name].shape == ours[name].shape, name
        assert np.sqrt(np.mean((theirs[name] - ours[name]) ** 2)) <= share * np.sqrt(np.mean(ours[name] ** 2)), name


def test_what_it_does_not_have_is_not_said(trained: Trained, tmp_path: Path) -> None:
    inside = inside_openvino(form_of(graph(), "fp32", trained, PLAIN, tmp_path))
    assert inside(["nothing of that name"], trained.inputs) == {}


def test_an_inside_that_cannot_be_looked_at_is_said_and_ends_no_stage(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such\nkernel")

    monkeypatch.setattr(openvino, "_shown", broken)
    attempt = held(swapped(), trained, tmp_path)
    assert attempt.drift is None
    why = "where it first drifts: could not be measured (model.xml: OpenVINO cannot say what is inside: no such kernel)"
    assert attempt.refused[-1] == why
    with pytest.raises(StageFailed, match="no such kernel"):
        inside_openvino(tmp_path / "model.xml")(["output0"], trained.inputs)
