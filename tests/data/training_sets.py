"""Small training sets in memory, for tests of the loader. Picklable, as workers get them."""

import os
import signal
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from nightowl.data.augment.draw import Ranges
from nightowl.data.augment.sample import Images
from nightowl.data.labels import Labels
from nightowl.data.loader import TrainingLoader
from nightowl.data.schedule import ranges
from nightowl.errors import DataError
from nightowl.params import AugmentParams, TrainParams

SIZE = 64


@dataclass(frozen=True)
class InMemory:
    """Decoded images in a list."""

    pixels: list[NDArray[np.uint8]]

    def __len__(self) -> int:
        return len(self.pixels)

    def image(self, index: int) -> NDArray[np.uint8]:
        return self.pixels[index]


def smooth_images(number: int, size: int = SIZE, seed: int = 0) -> InMemory:
    """Blurred noise of several aspect ratios, whose long side is `size`."""
    random = np.random.default_rng(seed)
    shapes = [(size, size * 3 // 4), (size, size * 9 // 16), (size * 3 // 4, size), (size, size)]
    coarse = [random.integers(0, 256, (5, 5, 3), dtype=np.uint8) for _ in range(number)]
    return InMemory([cv2.resize(c, shapes[i % 4], interpolation=cv2.INTER_CUBIC) for i, c in enumerate(coarse)])


def some_labels(number: int, most: int = 6, seed: int = 0) -> Labels:
    """Up to `most` boxes an image; some images have none."""
    random = np.random.default_rng(seed)
    counts = random.integers(0, most + 1, number)
    corners = random.random((counts.sum(), 2)) * 0.8
    sides = 0.02 + random.random((counts.sum(), 2)) * 0.9
    boxes = np.concatenate((corners, np.minimum(corners + sides, 1)), axis=1)
    return Labels(boxes, random.integers(0, 3, len(boxes)), np.concatenate(([0], np.cumsum(counts))))


@dataclass(frozen=True)
class Case:
    """A training set with its params."""

    images: Images
    labels: Labels
    size: int
    train: TrainParams

    def loader(self, **places: Any) -> TrainingLoader:
        return TrainingLoader(self.images, self.labels, self.size, self.train, **places)

    def ranges(self, epoch: int = 0) -> Ranges:
        return ranges(self.train, len(self.images), self.size, epoch)


def a_case(number: int = 10, size: int = SIZE, **params: Any) -> Case:
    """A set of `number` images. `params`: of train or of its augmentation, by name."""
    augment = AugmentParams(**{key: params.pop(key) for key in list(params) if key in AugmentParams.model_fields})
    train = TrainParams(augment=augment, **{"global_batch": 4, "epochs": 20, "close_mosaic_epochs": 2, **params})
    return Case(smooth_images(number, size), some_labels(number), size, train)


@dataclass(frozen=True)
class Faulty:
    """Images of which one, `at`, cannot be had: `fault` says how."""

    inner: InMemory
    at: int
    fault: str

    def __len__(self) -> int:
        return len(self.inner)

    def image(self, index: int) -> NDArray[np.uint8]:
        if index == self.at:
            self._fail()
        return self.inner.image(index)

    def _fail(self) -> None:
        if self.fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "exits":
            os._exit(3)
        if self.fault == "data":
            raise DataError("cache/pixels.bin: expected 12 bytes, found 3; build it again")
        if self.fault == "bug":
            raise RuntimeError("no such thing")
