"""Seeded faults, each of which parity must refuse, and an honest export in each precision, which it must let pass."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from nightowl.data.resize import letterbox_size
from nightowl.evaluation import detect
from nightowl.evaluation.card import ModelCard
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.preprocess import Letterbox, letterbox, plan_letterbox
from nightowl.evaluation.runners import OnnxRunner
from nightowl.export.attempt import hold
from nightowl.export.half import half
from nightowl.export.make import card_of, make
from nightowl.export.nms import with_nms
from nightowl.export.onnx import write_model
from nightowl.export.parity import Attempt
from nightowl.export.quantise import int8
from nightowl.export.trained import Trained
from nightowl.export_params import ExportParams, Precision
from tests.export.seeded import SIZE, a_trained_model, altered, graph

PLAIN, THINNED = ExportParams(), ExportParams(nms_in_graph=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return a_trained_model(tmp_path_factory.mktemp("seeded"))


def held(
    trained: Trained, model: onnx.ModelProto, path: Path, card: ModelCard | None = None, as_: Precision = "fp32"
) -> Attempt:
    write_model(model, card or card_of(as_, trained, PLAIN), path)
    return hold(as_, trained, PLAIN, path).attempt


def failed(attempt: Attempt) -> set[str]:
    assert attempt.passed is not bool(attempt.refused)
    return {each.rule for each in attempt.checks if not each.passed}


@pytest.mark.parametrize("export", [PLAIN, THINNED], ids=["NMS outside", "NMS inside"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_an_honest_export_passes(precision: Precision, export: ExportParams, trained: Trained, tmp_path: Path) -> None:
    make(precision, trained, export, tmp_path / "m.onnx")
    tried = hold(precision, trained, export, tmp_path / "m.onnx")
    assert tried.attempt.refused == ()
    assert tried.attempt.passed and tried.attempt.drift is None
    assert isinstance(tried.detections, Detections) and len(tried.detections) > 20
    card = OnnxRunner(tmp_path / "m.onnx").card.model
    inside = export.nms_in_graph
    assert (card.precision, card.nms_in_graph, card.head) == (precision, inside, "end2end" if inside else "raw")
    rules = " ".join(each.rule for each in tried.attempt.checks)
    assert all(part in rules for part in ("score gap", "from file to box", "mAP50-95", "at the operating point"))


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (lambda: altered(lambda weights: weights[:, ::-1]), "channels swapped"),
        (lambda: altered(lambda weights: weights / 255), "scaled twice; or not at all where the file expects it"),
        (lambda: altered(lambda weights: weights[[1, 2, 0]]), "class order permuted in the graph"),
        (lambda: graph(sharpness=6.0), "a stale ONNX of the model before"),
    ],
)
def test_a_graph_that_says_something_else_is_refused_and_its_first_module_named(
    model: Callable[[], onnx.ModelProto], why: str, trained: Trained, tmp_path: Path
) -> None:
    attempt = held(trained, model(), tmp_path / "m.onnx")
    assert "largest score gap" in failed(attempt), why
    assert any("from file to box" in rule for rule in failed(attempt)), why
    assert attempt.drift is not None
    assert attempt.drift.module == ("/model.1" if "stale" in why else "/model.0"), why
    assert f"first drifts in {attempt.drift.module}" in attempt.refused[-1]


def other_letterbox(grey: int, shift: int = 0, colour: int = -1, scale: float = 255.0):  # type: ignore[no-untyped-def]
    def fault(image: NDArray[np.uint8], size: int) -> tuple[NDArray[np.float32], Letterbox]:
        height, width = image.shape[:2]
        plan, _ = plan_letterbox(width, height, size)
        inner = cv2.resize(image, letterbox_size(width, height, size), interpolation=cv2.INTER_LINEAR)
        square, top = np.full((size, size, 3), grey, np.uint8), plan.pad_y + shift
        square[top : top + inner.shape[0]] = inner[: size - top]
        return np.ascontiguousarray(square[..., ::colour].transpose(2, 0, 1)).astype(np.float32) / np.float32(scale), plan

    return fault


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (other_letterbox(114, colour=1), "channels swapped"),
        (other_letterbox(0), "padded with black"),
        (other_letterbox(114, shift=1), "the spare pixel above, not below"),
        (other_letterbox(114, scale=1.0), "scale missing"),
    ],
)
def test_other_pre_processing_where_it_ships_is_refused(
    fault: object, why: str, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detect, "letterbox", fault)
    attempt = held(trained, graph(), tmp_path / "m.onnx")
    assert any("from file to box" in rule for rule in failed(attempt)), why
    assert "largest score gap" not in failed(attempt), "the graph itself is right, and that is said"
    assert attempt.drift is None


def test_the_letterbox_that_these_faults_are_made_of_is_right_without_them(trained: Trained) -> None:
    image = trained.sources[0].load()
    assert np.abs(other_letterbox(114)(image, SIZE)[0] - letterbox(image, SIZE)[0]).max() < 0.01


def with_model(card: ModelCard, **changed: object) -> ModelCard:
    return card.model_copy(update={"model": card.model.model_copy(update=changed)})


def with_thresholds(card: ModelCard, confidence: float) -> ModelCard:
    classes = tuple(each.model_copy(update={"confidence": confidence}) for each in card.operating.classes)
    return card.model_copy(update={"operating": card.operating.model_copy(update={"classes": classes})})


@pytest.mark.parametrize(
    ("change", "rule", "why"),
    [
        (lambda card: with_model(card, image_size=96), "from file to box", "wrong input size"),
        (lambda card: with_model(card, classes=("blue", "green", "red")), "mAP50-95 gap on test", "class order permuted"),
        (
            lambda card: card.model_copy(update={"limits": card.limits.model_copy(update={"nms_iou": 0.95})}),
            "largest box gap, from file to box, px",
            "NMS threshold changed",
        ),
        (
            lambda card: with_thresholds(card, 1.0),
            "miss rate gap at the operating point",
            "thresholds of another model",
        ),
    ],
)
def test_a_card_that_is_not_the_models_is_refused_by_its_entries_and_by_what_it_does(
    change: Callable[[ModelCard], ModelCard], rule: str, why: str, trained: Trained, tmp_path: Path
) -> None:
    attempt = held(trained, graph(), tmp_path / "m.onnx", change(card_of("fp32", trained, PLAIN)))
    assert {rule, "entries of the file's card that are not the model's"} <= failed(attempt), why


def test_nms_inside_the_file_with_another_threshold_is_refused(trained: Trained, tmp_path: Path) -> None:
    other = with_nms(graph(), trained.card.limits.model_copy(update={"nms_iou": 0.95}))
    write_model(other, card_of("fp32", trained, THINNED), tmp_path / "m.onnx")
    attempt = hold("fp32", trained, THINNED, tmp_path / "m.onnx").attempt
    assert any("from file to box" in rule for rule in failed(attempt))
    assert "largest score gap" not in failed(attempt) and attempt.drift is None, "before the thinning it is the same"


def test_a_batch_fixed_at_one_is_refused(trained: Trained, tmp_path: Path) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(graph())
    for end in (*model.graph.input, *model.graph.output):
        end.type.tensor_type.shape.dim[0].dim_value = 1
    attempt = held(trained, model, tmp_path / "m.onnx")
    assert {"tensors", "on test"} <= failed(attempt)
    assert any("cannot run it on (4, 3, 64, 64)" in line for line in attempt.refused)


def scaled(up: float) -> onnx.ModelProto:
    """Equal in FP32: what the first module hands on is `up` times as large, and the second takes that back."""
    model = altered(lambda weights: weights * up)
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    for name, factor in ((convolutions[0].input[2], up), (convolutions[1].input[1], 1 / up)):
        weight = next(each for each in model.graph.initializer if each.name == name)
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(factor), name))
    return model


def test_an_overflow_of_fp16_in_one_layer_is_refused_though_the_file_runs_well_here(trained: Trained, tmp_path: Path) -> None:
    from dataclasses import replace

    large = scaled(2.0**18)
    assert held(trained, large, tmp_path / "fp32.onnx").passed, "in FP32 it is the same model"
    attempt = held(replace(trained, graph=large), half(large), tmp_path / "m.onnx", as_="fp16")
    assert {"largest value of any tensor", "largest score gap"} <= failed(attempt)
    assert any("mAP50-95" in rule and "rounded" in rule for rule in failed(attempt))
    assert attempt.drift is not None and attempt.drift.module == "/model.0"


def test_int8_with_its_head_quantised_is_refused(trained: Trained, tmp_path: Path) -> None:
    whole = int8(graph(), iter(trained.inputs), [], 100)
    attempt = held(trained, whole, tmp_path / "m.onnx", as_="int8")
    assert "mAP50-95 gap on test" in failed(attempt)
    assert attempt.drift is not None and attempt.drift.module == "/model.2"


def test_a_model_that_says_nan_is_refused_and_an_unreadable_file_too(trained: Trained, tmp_path: Path) -> None:
    attempt = held(trained, altered(lambda weights: weights * np.nan), tmp_path / "m.onnx")
    assert {"largest score gap", "from file to box", "on test"} <= failed(attempt)
    assert attempt.drift is not None and attempt.drift.share is None
    (tmp_path / "m.onnx").write_bytes(b"not a model")
    assert failed(hold("fp32", trained, PLAIN, tmp_path / "m.onnx").attempt) == {"the file opens"}
