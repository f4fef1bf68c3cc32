"""The training loader: augmented batches, each a function of (seed, epoch, step) alone.

The same batches bit for bit with any number of workers, and, put together, with any number of ranks.
"""

import mmap
from collections.abc import Iterator

from nightowl.data.augment.sample import Images
from nightowl.data.batch import Batch
from nightowl.data.labels import Labels
from nightowl.data.maker import Maker, Share, TrainingSet, batch_of
from nightowl.data.pool import Pool
from nightowl.data.sampler import Sampler
from nightowl.data.schedule import most_objects, ranges
from nightowl.data.slots import Layout, Ring
from nightowl.errors import DataError
from nightowl.params import TrainParams


class TrainingLoader:
    """Batches for `rank` of `world_size`. A context manager: leaving it ends the workers.

    `images` and `labels`, of the same images in the same order, go to the workers by pickle. `size`: of the training, pixels.
    `num_workers`: 0 makes each batch when it is asked for. `prefetch_steps`: made ahead at most. `colour_later`: the HSV gains
    come with the batch, for the device to apply. A batch's memory is used again when nothing refers to its pixels any more.
    """

    def __init__(
        self,
        images: Images,
        labels: Labels,
        size: int,
        train: TrainParams,
        *,
        num_workers: int = 0,
        rank: int = 0,
        world_size: int = 1,
        prefetch_steps: int = 2,
        colour_later: bool = False,
    ) -> None:
        self._num_images = len(images)
        if self._num_images == 0:
            raise DataError("the training set has no images; expected at least one")
        if len(labels) != self._num_images:
            raise DataError(f"{self._num_images} training images, but labels of {len(labels)}; prepare the data again")
        self._train = train
        self._set = TrainingSet(images, labels, size, train.seed, colour_later)
        self._sampler = Sampler(self._num_images, train.global_batch, train.seed, rank, world_size)
        self._layout = Layout(prefetch_steps + 2, self._sampler.most(), size, most_objects(train, labels.most()))
        self._maker = Maker(self._set) if num_workers == 0 else None
        self._pool = Pool(self._set, self._layout, num_workers, prefetch_steps) if num_workers else None
        self._ring = Ring(self._layout, mmap.mmap(-1, self._layout.num_bytes())) if num_workers == 0 else None

    def num_steps(self) -> int:
        """Optimizer steps of an epoch; the last one may have fewer images."""
        return self._sampler.num_steps()

    def steps(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """This rank's share of each optimizer step of `epoch` (from 0), from step `first` on."""
        drawn_from = ranges(self._train, self._num_images, self._set.size, epoch)
        shares = (Share(epoch, drawn_from, samples.tolist()) for samples in self._sampler.shares(epoch, first))
        return self._pool.run(shares) if self._pool else map(self._inline, shares)

    def close(self) -> None:
        """End the workers. A second call does nothing."""
        if self._pool:
            self._pool.close()

    def __enter__(self) -> "TrainingLoader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _inline(self, share: Share) -> Batch:
        assert self._maker is not None and self._ring is not None
        slot = self._ring.lend(self._ring.take()) if self._ring else self._layout.private()
        self._maker.make(share, slot)
        return batch_of(slot, share.samples, self._set.colour_later)
