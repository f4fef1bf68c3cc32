"""Predictions on images that nobody labelled, by an exported model."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from nightowl.errors import UserError
from nightowl.evaluation.predict import Predictions, predict
from nightowl.evaluation.runners import OnnxRunner
from nightowl.export.onnx import export_onnx
from tests.tiny import CLASSES, tiny_card, tiny_module


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> OnnxRunner:
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    export_onnx(tiny_module(), tiny_card(), 17, path)
    return OnnxRunner(path, threads=1)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "board.png"
    squares = np.random.default_rng(0).integers(0, 256, (6, 6, 3), np.uint8)
    cv2.imwrite(str(path), cv2.resize(squares, (120, 80), interpolation=cv2.INTER_NEAREST))
    return path


def test_detections_are_written_and_drawn(runner: OnnxRunner, image: Path, tmp_path: Path) -> None:
    result = predict(runner, "demo@1", [image], output=tmp_path / "out")
    assert Predictions.model_validate_json((tmp_path / "out" / "predictions.json").read_bytes()) == result
    (one,) = result.images
    assert one.detections
    assert (one.width, one.height, one.drawn) == (120, 80, "board.png.detections.jpg")
    assert {d.class_name for d in one.detections} <= set(CLASSES)
    assert all(0 <= d.box_xyxy[0] <= d.box_xyxy[2] <= 120 and 0 <= d.box_xyxy[1] <= d.box_xyxy[3] <= 80 for d in one.detections)
    drawn = cv2.imread(str(tmp_path / "out" / "board.png.detections.jpg"))
    assert drawn.shape == (80, 120, 3)


def test_a_detection_counts_from_the_operating_point_up(runner: OnnxRunner, image: Path) -> None:
    scores = [d.confidence for d in predict(runner, "m", [image]).images[0].detections or ()]
    few = [d.confidence for d in predict(runner, "m", [image], confidence=max(scores)).images[0].detections or ()]
    assert min(scores) >= 0.3
    assert scores == sorted(scores, reverse=True)
    assert len(few) < len(scores)


def test_an_unreadable_image_is_said_and_the_others_are_looked_at(runner: OnnxRunner, image: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no image")
    result = predict(runner, "m", [broken, image])
    assert result.num_failed == 1
    assert "broken.jpg" in str(result.images[0].error)
    assert result.images[0].detections is None
    assert result.images[1].detections


def test_images_of_one_name_are_drawn_beside_each_other(runner: OnnxRunner, image: Path, tmp_path: Path) -> None:
    other = tmp_path / "lot" / image.name
    other.parent.mkdir()
    other.write_bytes(image.read_bytes())
    result = predict(runner, "m", [image, other], output=tmp_path / "out")
    assert [one.drawn for one in result.images] == ["board.png.detections.jpg", "board.png.2.detections.jpg"]


def test_a_folder_stands_for_the_images_in_it_and_its_layout_is_kept(runner: OnnxRunner, image: Path, tmp_path: Path) -> None:
    folder = tmp_path / "line"
    for lot in ("a", "b"):
        (folder / lot).mkdir(parents=True)
        (folder / lot / image.name).write_bytes(image.read_bytes())
    (folder / "notes.txt").write_text("no image")
    output = folder / "found"
    for _ in range(2):
        result = predict(runner, "m", [folder], output=output)
        drawn = [one.drawn for one in result.images]
        assert drawn == ["a/board.png.detections.jpg", "b/board.png.detections.jpg"], "what it drew itself is no image of it"
        assert all((output / str(name)).is_file() for name in drawn)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="empty: no image in this folder"):
        predict(runner, "m", [tmp_path / "empty"])


def test_drawings_of_an_earlier_run_do_not_stay_beside_the_record_of_this_one(
    runner: OnnxRunner, image: Path, tmp_path: Path
) -> None:
    output, kept = tmp_path / "out", tmp_path / "out" / "mine.detections.jpg"
    predict(runner, "m", [image, image], output=output)
    kept.write_bytes(b"of the user")
    predict(runner, "m", [image], output=output)
    assert sorted(path.name for path in output.iterdir()) == ["board.png.detections.jpg", kept.name, "predictions.json"]


@pytest.mark.parametrize("confidence", [-0.1, 0.0, 1.5])
def test_a_confidence_that_means_nothing_is_refused(runner: OnnxRunner, image: Path, confidence: float) -> None:
    with pytest.raises(UserError, match=r"--confidence must lie from 0\.001"):
        predict(runner, "m", [image], confidence=confidence)


def test_a_model_without_an_operating_point_asks_for_a_confidence(image: Path, tmp_path: Path) -> None:
    export_onnx(tiny_module(), tiny_card(overall=None), 17, tmp_path / "m.onnx")
    runner = OnnxRunner(tmp_path / "m.onnx", threads=1)
    with pytest.raises(UserError, match="has no operating point"):
        predict(runner, "m", [image])
    assert predict(runner, "m", [image], confidence=0.5).thresholds == (0.5,) * len(CLASSES)
