"""Runners: torch and ONNX behind one call, and a model file that says what it is."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from nightowl.errors import WeightsError
from nightowl.evaluation.card import from_metadata, to_metadata
from nightowl.evaluation.device import torch_device
from nightowl.evaluation.runners import OnnxRunner, TorchRunner
from tests.tiny import CLASSES, SIZE, tiny_card, tiny_module


def a_graph(metadata: dict[str, str]) -> onnx.ModelProto:
    """A valid model that gives back what it is given."""
    value = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["b", 3, SIZE, SIZE]) for name in ("in", "out")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["in"], ["out"])], "g", value[:1], value[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)
    onnx.helper.set_model_props(model, metadata)
    return model


def test_a_card_survives_the_metadata() -> None:
    assert from_metadata(Path("x.onnx"), to_metadata(tiny_card())) == tiny_card()


def test_an_exported_file_runs_and_knows_itself(tmp_path: Path) -> None:
    onnx.save(a_graph(to_metadata(tiny_card())), tmp_path / "m.onnx")
    runner = OnnxRunner(tmp_path / "m.onnx", threads=1)
    assert runner.card == tiny_card()
    batch = np.random.default_rng(0).random((2, 3, SIZE, SIZE), np.float32)
    assert np.array_equal(runner(batch), batch)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such model file"),
        (b"not onnx", "expected an ONNX model, onnxruntime cannot open it"),
        (b"", "expected an ONNX model, onnxruntime cannot open it"),
        ({}, "not exported by nightowl: its metadata lack nightowl.model"),
        ({**to_metadata(tiny_card()), "nightowl.model": "{}"}, "not a model card: model.architecture: Field required"),
        ({**to_metadata(tiny_card()), "nightowl.limits": "}"}, "not a model card"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes | dict[str, str] | None, message: str) -> None:
    path = tmp_path / "m.onnx"
    if isinstance(content, dict):
        onnx.save(a_graph(content), path)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(WeightsError, match=message):
        OnnxRunner(path)


def test_a_torch_module_gives_its_first_output_as_numpy() -> None:
    output = TorchRunner(tiny_module())(np.zeros((2, 3, SIZE, SIZE), np.float32))
    assert output.dtype == np.float32
    assert output.shape == (2, 4 + len(CLASSES), 189)


@pytest.mark.parametrize(("setting", "device"), [("cpu", "cpu"), ("1", "cuda:1"), ("cuda:0", "cuda:0")])
def test_the_device_setting_names_a_torch_device(setting: str, device: str) -> None:
    assert torch_device(setting) == device
