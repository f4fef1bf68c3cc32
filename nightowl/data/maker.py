"""Makes batches: each sample drawn, augmented and written into a slot, by the same code in a worker and without one."""

from dataclasses import dataclass

import numpy as np

from nightowl.data.augment.draw import Source, draw
from nightowl.data.augment.sample import Augmenter, Images
from nightowl.data.batch import Batch
from nightowl.data.labels import Labels
from nightowl.data.sampler import mixup_probability, mosaic_probability
from nightowl.data.slots import Slot
from nightowl.params import TrainParams


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a sample depends on, besides (epoch, number). `colour_later`: the HSV gains come with the batch, not applied."""

    images: Images
    labels: Labels
    size: int
    train: TrainParams
    colour_later: bool = False

    def max_objects(self) -> int:
        """The most that one sample can have."""
        augment = self.train.augment
        return self.labels.most() * (4 if augment.mosaic or augment.mosaic_last else 1) * (2 if augment.mixup else 1)


class Maker:
    """Carries out a recipe, in one thread of one process."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._augmenter = Augmenter(recipe.images, recipe.labels, recipe.size, recipe.colour_later)

    def make(self, epoch: int, samples: list[int], slot: Slot, first: int = 0) -> None:
        """Write `samples` of `epoch` into `slot`, from image `first` on."""
        recipe, train = self._recipe, self._recipe.train
        source = Source(
            num_images=len(recipe.images),
            size=recipe.size,
            params=train.augment,
            mosaic=mosaic_probability(train, epoch),
            mixup=mixup_probability(train, epoch),
        )
        for place, sample in enumerate(samples, first):
            drawn = draw(source, train.seed, epoch, sample)
            boxes, class_ids = self._augmenter.augment(drawn, slot.images[place])
            slot.counts[place] = len(boxes)
            slot.boxes[place, : len(boxes)] = boxes
            slot.class_ids[place, : len(boxes)] = class_ids
            slot.hsv_gains[place] = drawn.hsv_gains


def batch_of(slot: Slot, samples: list[int], colour_later: bool) -> Batch:
    """What is in `slot`, for as many images as there are `samples`. Pixels are a view, boxes are copied."""
    number = len(samples)
    counts = slot.counts[:number]
    filled = np.arange(slot.boxes.shape[1]) < counts[:, None]
    return Batch(
        images=slot.images[:number],
        boxes_cxcywh_norm=slot.boxes[:number][filled],
        class_ids=slot.class_ids[:number][filled],
        owners=np.repeat(np.arange(number), counts),
        samples=np.array(samples, dtype=np.int64),
        hsv_gains=slot.hsv_gains[:number].copy() if colour_later else None,
    )
