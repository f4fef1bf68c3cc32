"""Our figures against those of ultralytics' own validator, on the same model and images."""

import copy
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from nightowl.data.images import load_bgr
from nightowl.data.manifest import Box, Image
from nightowl.evaluation.detect import Model, Source, detect
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.evaluate import Subject, evaluate
from nightowl.evaluation.runners import TorchRunner
from nightowl.evaluation.truth import truth_of
from nightowl.params import EvaluateParams
from tests.tiny import CLASSES, SIZE, tiny_module

LIMITS = EvaluateParams()


def some_images(folder: Path) -> list[Path]:
    """Smooth random images of several shapes."""
    random = np.random.default_rng(0)
    paths = []
    for index, (width, height) in enumerate([(96, 96), (192, 96), (96, 144), (288, 288)] * 3):
        coarse = random.integers(0, 256, (6, 6, 3), np.uint8)
        paths.append(folder / f"{index:02}.png")
        cv2.imwrite(str(paths[-1]), cv2.resize(coarse, (width, height), interpolation=cv2.INTER_NEAREST))
    return paths


def truth_from(detections: Detections, paths: list[Path]) -> tuple[Image, ...]:
    """Labels that the model half agrees with: its own detections, likelier the higher their score, moved a little.

    They lie inside the image: ultralytics matches boxes before it clips them, we match what is shipped.
    """
    random = np.random.default_rng(1)
    images = []
    for path in paths:
        height, width = load_bgr(path).shape[:2]
        found = detections.of_image(path.name)
        inside = (found.boxes_xyxy[:, :2].min(axis=1) > 6) & (found.boxes_xyxy[:, 2:] < [width - 6, height - 6]).all(axis=1)
        chosen = inside & (random.random(len(inside)) < found.score)
        boxes = [
            Box(int(class_id), *(corners + random.normal(0, 1, 4)).tolist())
            for corners, class_id in zip(found.boxes_xyxy[chosen], found.class_id[chosen], strict=True)
        ]
        images.append(Image(path.name, "0" * 64, 1, width, height, "test", tuple(boxes)))
    return tuple(images)


def by_ultralytics(folder: Path, images: tuple[Image, ...]) -> NDArray[np.float64]:
    """mAP50 and mAP50-95 by its validator, on squares and with all candidates."""
    from ultralytics.models.yolo.detect import DetectionValidator

    for image in images:
        scale = np.array([image.width, image.height] * 2)
        lines = []
        for box in image.boxes:
            x1, y1, x2, y2 = np.array(box[1:5]) / scale
            lines.append(f"{box.class_id} {(x1 + x2) / 2:.9f} {(y1 + y2) / 2:.9f} {x2 - x1:.9f} {y2 - y1:.9f}\n")
        (folder / image.path).with_suffix(".txt").write_text("".join(lines))
    names = "".join(f"  {i}: {name}\n" for i, name in enumerate(CLASSES))
    (folder / "data.yaml").write_text(f"path: {folder}\ntrain: .\nval: .\nnames:\n{names}")
    options = {
        "data": str(folder / "data.yaml"),
        "imgsz": SIZE,
        "batch": 4,
        "rect": False,
        "device": "cpu",
        "workers": 0,
        "plots": False,
        "verbose": False,
        "conf": LIMITS.confidence_floor,
        "iou": LIMITS.nms_iou,
        "save_dir": str(folder / "runs"),
    }
    validator = DetectionValidator(args=options, save_dir=folder / "runs")
    validator(model=copy.deepcopy(tiny_module()))  # it fuses what it is given
    return np.array([validator.metrics.box.map50, validator.metrics.box.map])


@pytest.mark.filterwarnings("default")
def test_our_map_is_within_half_a_point_of_ultralytics(tmp_path: Path) -> None:
    paths = some_images(tmp_path)
    sources = [Source(path.name, lambda path=path: load_bgr(path)) for path in paths]
    found = detect(Model(TorchRunner(tiny_module()), CLASSES, SIZE, "raw"), sources, LIMITS, "test").detections
    images = truth_from(found, paths)
    subject = Subject("m", "0", "1", "test", 0.0)
    ours = evaluate(truth_of(CLASSES, images), found, subject, max_detections=300, confusion_confidence=0.25).metrics
    theirs = by_ultralytics(tmp_path, images)
    assert 0.05 < theirs[1] < 0.95
    print("OURS", ours.map50, ours.map50_95, theirs)
    assert [ours.map50, ours.map50_95] == pytest.approx(theirs, abs=0.005)
