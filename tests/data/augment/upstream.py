"""Ultralytics' own training transform, with its randomness scripted by one of our draws, or recorded."""

# ruff: noqa: E402 - ultralytics reads its environment when imported

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from nightowl.data.augment.draw import Draw, View
from nightowl.training.quiet import silence
from tests.data.training_sets import Case

silence()

from ultralytics.cfg import get_cfg
from ultralytics.data import augment
from ultralytics.data.augment import Format, v8_transforms
from ultralytics.utils.instance import Instances


class Dataset:
    """What the transforms ask of a YOLODataset cached in memory."""

    cache, buffer, data, use_obb, use_keypoints = "ram", (), {}, False, False

    def __init__(self, case: Case) -> None:
        self.case = case

    def __len__(self) -> int:
        return len(self.case.images)

    def get_image_and_label(self, index: int) -> dict[str, Any]:
        pixels, (boxes, class_ids, _) = self.case.images.image(index), self.case.labels.of_all([index])
        centres = np.concatenate(((boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]), axis=1)
        return {
            "im_file": str(index),
            "img": pixels.copy(),
            "cls": class_ids[:, None].astype(np.float32),
            "instances": Instances(centres.astype(np.float32), bbox_format="xywh", normalized=True),
            "ori_shape": pixels.shape[:2],
            "resized_shape": pixels.shape[:2],
            "ratio_pad": (1.0, 1.0),
        }


def transform_of(case: Case) -> tuple[Dataset, Any]:
    """The dataset and the transform that ultralytics builds for training with the case's params."""
    params = case.train.augment
    same = {key: getattr(params, key) for key in ("hsv_h", "hsv_s", "hsv_v", "degrees", "translate", "scale", "shear")}
    flips = {"fliplr": params.flip_left_right, "flipud": params.flip_up_down}
    given = get_cfg(
        overrides={**same, **flips, "perspective": params.perspective, "mosaic": params.mosaic, "mixup": params.mixup}
    )
    dataset = Dataset(case)
    transforms = v8_transforms(dataset, case.size, given)
    transforms.append(Format(bbox_format="xywh", normalize=True, batch_idx=True, bgr=0.0))
    return dataset, transforms


class Script:
    """Stands in for the module `random` and for functions of `numpy.random`: gives what a draw says, in the order that upstream
    asks, and checks that upstream could have drawn it."""

    def __init__(self, drawn: Draw, case: Case) -> None:
        self.values = list(_script(drawn, case))

    def uniform(self, low: float, high: float, size: int | None = None) -> Any:
        if size is not None:
            return np.array([self.uniform(low, high) for _ in range(size)])
        value = self.values.pop(0)
        assert low - 1e-9 <= value <= high + 1e-9, f"{value} is not within {low} and {high}"
        return value

    def randint(self, low: int, high: int) -> int:
        value = self.values.pop(0)
        assert isinstance(value, int) and low <= value <= high
        return value

    def random(self) -> float:
        return float(self.values.pop(0))

    def beta(self, a: float, b: float) -> float:
        assert (a, b) == (32, 32)
        return float(self.values.pop(0))


def _script(drawn: Draw, case: Case) -> Iterator[float]:
    params = case.train.augment
    yield from _of_view(drawn.view)
    yield 0.0 if drawn.mixed else 1.0
    if drawn.mixed:
        yield drawn.mixed.images[0]
        yield from _of_view(drawn.mixed)
        yield drawn.mix_ratio
    yield 1.0  # no cutmix
    yield from np.array(drawn.hsv_gains) / (params.hsv_h, params.hsv_s, params.hsv_v)
    yield from (0.0 if flip else 1.0 for flip in (drawn.flip_up_down, drawn.flip_left_right))
    yield 1.0  # not BGR


def _of_view(view: View) -> Iterator[float]:
    yield 0.0 if view.centre else 1.0
    if view.centre:
        yield from view.images[1:]
        yield from view.centre[::-1]
    yield from (*view.perspective, view.degrees, view.scale, *view.shear_degrees, *view.translate)


@contextmanager
def instead_of_random(script: Any) -> Iterator[None]:
    """Inside, upstream's transforms draw from `script`."""
    numpy_random = {"uniform": script.uniform, "beta": script.beta}
    with mock.patch.object(augment, "random", script), mock.patch.multiple(np.random, **numpy_random):
        yield


def by_upstream(case: Case, sample: int, drawn: Draw) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.int64]]:
    """Image (3, S, S), boxes_xyxy in pixels and class ids, as ultralytics makes them of this draw."""
    dataset, transform = transform_of(case)
    script = Script(drawn, case)
    with instead_of_random(script):
        made = transform(dataset.get_image_and_label(sample))
    assert script.values == [], "upstream asked for fewer random numbers"
    centres = made["bboxes"].numpy().astype(np.float64) * case.size
    boxes = np.concatenate((centres[:, :2] - centres[:, 2:] / 2, centres[:, :2] + centres[:, 2:] / 2), axis=1)
    return made["img"].numpy(), boxes, made["cls"].numpy().reshape(-1).astype(np.int64)


class Recorder:
    """Stands in for the same, draws at random as they do, and keeps what was drawn in `values`."""

    def __init__(self, seed: int) -> None:
        self.values: list[float] = []
        self._random, self._numpy = random.Random(seed), np.random.RandomState(seed)

    def uniform(self, low: float, high: float, size: int | None = None) -> Any:
        if size is not None:
            return np.array([self.uniform(low, high) for _ in range(size)])
        return self._kept(self._random.uniform(low, high))

    def randint(self, low: int, high: int) -> int:
        return self._kept(self._random.randint(low, high))

    def random(self) -> float:
        return self._kept(self._random.random())

    def beta(self, a: float, b: float) -> float:
        return self._kept(float(self._numpy.beta(a, b)))

    def _kept(self, value: Any) -> Any:
        self.values.append(value)
        return value
