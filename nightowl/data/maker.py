"""Makes batches: each sample drawn, augmented and written into a slot, by the same code in a worker and without one."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nightowl.data.augment.draw import Ranges, draw
from nightowl.data.augment.sample import Augmenter, Images
from nightowl.data.batch import Batch
from nightowl.data.labels import Labels
from nightowl.data.slots import Slot
from nightowl.data.streams import Streams


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """What samples are made of. `size`: of the training, S; `seed`: of all draws.

    `colour_later`: the HSV gains come with the batch, not applied.
    """

    images: Images
    labels: Labels
    size: int
    seed: int
    colour_later: bool = False


class Share(NamedTuple):
    """Samples to make: their epoch, what it draws from, and their numbers in the set."""

    epoch: int
    ranges: Ranges
    samples: list[int]


class Maker:
    """Makes samples of one set, in one thread of one process."""

    def __init__(self, training_set: TrainingSet) -> None:
        self._seed, self._streams = training_set.seed, Streams()
        self._augmenter = Augmenter(
            training_set.images, training_set.labels, training_set.size, colour_later=training_set.colour_later
        )

    def make(self, share: Share, slot: Slot, first: int = 0) -> None:
        """Write the samples of `share` into `slot`, from image `first` on."""
        for place, sample in enumerate(share.samples, first):
            drawn = draw(share.ranges, sample, self._streams.of(self._seed, share.epoch, sample))
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
