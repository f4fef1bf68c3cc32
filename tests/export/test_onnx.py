"""The exported file: valid, the same every time, any batch, says what torch says, and knows what it is."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from nightowl.evaluation.postprocess import Head
from nightowl.evaluation.runners import OnnxRunner, TorchRunner
from nightowl.export.onnx import export_onnx
from nightowl.export.tensors import tensor_gap
from nightowl.files import sha256_file
from tests.tiny import SIZE, tiny_card, tiny_module

HEADS: list[Head] = ["raw", "end2end"]


@pytest.fixture(scope="module", params=HEADS)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Head, Path]:
    path = tmp_path_factory.mktemp("export") / "model.onnx"
    export_onnx(tiny_module(request.param), tiny_card(request.param), 17, path)
    return request.param, path


def test_it_says_what_torch_says_at_any_batch(exported: tuple[Head, Path]) -> None:
    head, path = exported
    images = np.random.default_rng(0).random((5, 3, SIZE, SIZE), np.float32)
    gap = tensor_gap(TorchRunner(tiny_module(head)), OnnxRunner(path, threads=1), images, head, 0.001)
    assert gap.score < 0.003  # sharpened random weights on noise: torch itself is 0.0006 from double precision
    assert gap.box_px is not None
    assert gap.box_px < 0.1


def test_its_card_comes_back(exported: tuple[Head, Path]) -> None:
    head, path = exported
    assert OnnxRunner(path).card == tiny_card(head)


def test_it_is_plain_onnx_of_the_asked_version(exported: tuple[Head, Path]) -> None:
    model = onnx.load(exported[1])
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 17)]
    assert model.ir_version <= 10
    assert {node.domain for node in model.graph.node} == {""}
    sides = model.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in sides] == ["batch", 3, SIZE, SIZE]


def test_the_module_is_left_as_it_was(exported: tuple[Head, Path]) -> None:
    detect = list(tiny_module(exported[0]).modules())[1][-1]
    assert not detect.export


def test_another_process_gives_the_same_bytes(exported: tuple[Head, Path], tmp_path: Path) -> None:
    head, path = exported
    code = (
        "import sys; from pathlib import Path; from tests.tiny import *; from nightowl.export.onnx import export_onnx\n"
        f"export_onnx(tiny_module({head!r}), tiny_card({head!r}), 17, Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "again.onnx")], check=True)
    assert sha256_file(tmp_path / "again.onnx") == sha256_file(path)
