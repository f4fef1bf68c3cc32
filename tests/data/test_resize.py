from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from nightowl.data.images import Size
from nightowl.data.resize import letterbox_size, resized, training_size
from tests.tiny import quiet_ultralytics

SHAPES = [
    ((640, 480), "smaller, to scale"),
    ((1280, 720), "larger, to scale"),
    ((96, 71), "as wide as the network"),
    ((500, 333), "short side 63.9"),
    ((333, 500), "upright"),
    ((1000, 1), "a line"),
    ((1, 1000), "an upright line"),
    ((5000, 7), "thinner than a pixel when scaled"),
    ((97, 97), "square"),
    ((301, 106), "short side 33.8"),
    ((299, 106), "short side 34.03: up, and down"),
]


@pytest.mark.parametrize(("shape", "why"), SHAPES)
def test_training_pixels_are_those_of_upstreams_load_image(shape: tuple[int, int], why: str, tmp_path: Path) -> None:
    quiet_ultralytics()
    from ultralytics.data.base import BaseDataset

    image = np.random.default_rng(0).integers(0, 256, (shape[1], shape[0], 3), dtype=np.uint8)
    path = tmp_path / "image.png"
    cv2.imwrite(str(path), image)
    itself = SimpleNamespace(
        ims=[None], im_files=[str(path)], npy_files=[tmp_path / "none.npy"], cache=False, cv2_flag=cv2.IMREAD_COLOR,
        imgsz=96, augment=False,
    )  # fmt: skip
    theirs, original, scaled = BaseDataset.load_image(itself, 0)
    size = training_size(*shape, 96)
    assert (size.height, size.width) == scaled and original == shape[::-1], why
    assert np.array_equal(resized(image, size), theirs), why


@pytest.mark.parametrize(
    ("shape", "training", "letterbox"),
    [
        ((640, 427), Size(96, 65), Size(96, 64)),  # 64.05: load_image rounds up
        ((640, 426), Size(96, 64), Size(96, 64)),  # 63.9
        ((640, 480), Size(96, 72), Size(96, 72)),  # 72 exactly
        ((5000, 7), Size(96, 1), Size(96, 1)),  # 0.13
    ],
)
def test_the_two_rules_differ_only_where_the_fraction_is_small(shape: tuple[int, int], training: Size, letterbox: Size) -> None:
    assert (training_size(*shape, 96), letterbox_size(*shape, 96)) == (training, letterbox)
