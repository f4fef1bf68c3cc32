"""OpenVINO: the same model in another form, its card inside, the same numbers, and clear words where it cannot be had."""

import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from nightowl.errors import StageFailed, UserError, WeightsError
from nightowl.evaluation.openvino import OpenVinoRunner
from nightowl.export.artefact import open_artefact
from nightowl.export.half import half
from nightowl.export.openvino import convert
from nightowl.export.tensors import compare_outputs
from tests.export.graphs import run, scaled_graph, tiny_graph
from tests.tiny import SIZE, tiny_card

pytest.importorskip("openvino", reason="the optional part `openvino` is not installed")


@pytest.fixture(scope="module")
def xml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("openvino")
    onnx.save(tiny_graph(), folder / "model.onnx")
    convert(folder / "model.onnx", folder / "model.xml")
    return folder / "model.xml"


def test_it_knows_itself_and_says_what_the_onnx_says_at_any_batch(xml: Path) -> None:
    runner = open_artefact(xml, threads=1)
    assert isinstance(runner, OpenVinoRunner)
    assert runner.card == tiny_card()
    for num in (1, 3):
        patches = np.random.default_rng(num).random((num, 3, 6, 6), np.float32)
        batch = patches.repeat(SIZE // 6, axis=2).repeat(SIZE // 6, axis=3)  # on noise the random weights magnify rounding
        ours, theirs = runner(batch), run(tiny_graph(), batch)
        assert ours.shape == theirs.shape
        gap = compare_outputs(ours, theirs, "raw", 0.3)
        assert gap.box_px is not None and gap.box_px <= 0.1
        assert gap.score <= 0.001


def test_an_output_is_kept_when_the_next_is_made(xml: Path) -> None:
    runner = OpenVinoRunner(xml, threads=1)
    first = runner(np.zeros((1, 3, SIZE, SIZE), np.float32))
    before = first.copy()
    runner(np.ones((1, 3, SIZE, SIZE), np.float32))
    assert np.array_equal(first, before)


def test_a_graph_in_fp16_stays_what_it_is(tmp_path: Path) -> None:
    onnx.save(half(tiny_graph()), tmp_path / "half.onnx")
    convert(tmp_path / "half.onnx", tmp_path / "half.xml")
    assert OpenVinoRunner(tmp_path / "half.xml", threads=1).card == tiny_card()
    assert (tmp_path / "half.bin").stat().st_size < 0.7 * sum(len(w.raw_data) for w in tiny_graph().graph.initializer)


def test_what_is_broken_missing_or_not_ours_is_refused(xml: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"none\.xml: no such model file"):
        OpenVinoRunner(tmp_path / "none.xml")
    shutil.copyfile(xml, tmp_path / "alone.xml")
    with pytest.raises(WeightsError, match=r"alone\.bin: no such model file; OpenVINO needs the \.xml and its \.bin"):
        OpenVinoRunner(tmp_path / "alone.xml")
    (tmp_path / "broken.xml").write_text("<net")
    shutil.copyfile(xml.with_suffix(".bin"), tmp_path / "broken.bin")
    with pytest.raises(WeightsError, match=r"broken\.xml: expected a model of OpenVINO's"):
        OpenVinoRunner(tmp_path / "broken.xml")
    onnx.save(scaled_graph(2.0, 0.5), tmp_path / "other.onnx")
    convert(tmp_path / "other.onnx", tmp_path / "other.xml")
    with pytest.raises(WeightsError, match="not exported by nightowl"):
        OpenVinoRunner(tmp_path / "other.xml")
    (tmp_path / "no.onnx").write_bytes(b"nothing")
    with pytest.raises(StageFailed, match=r"OpenVINO cannot read no\.onnx"):
        convert(tmp_path / "no.onnx", tmp_path / "no.xml")


def test_where_it_is_not_installed_the_words_say_how(xml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(UserError, match=r"pip install 'nightowl\[openvino\]'"):
        open_artefact(xml)
    with pytest.raises(UserError, match=r"expected a model file that ends in \.onnx, \.xml, \.engine"):
        open_artefact(Path("best.pt"))
