"""The training loader: augmented batches, each a function of (seed, epoch, step) alone.

The same batches bit for bit with any number of workers, and, put together, with any number of ranks.
"""

from collections.abc import Iterator

from nightowl.data.batch import Batch
from nightowl.data.maker import Maker, Recipe, batch_of
from nightowl.data.pool import Pool, Share
from nightowl.data.sampler import Sampler
from nightowl.data.slots import Layout
from nightowl.errors import DataError


class TrainingLoader:
    """Batches of `recipe`, for `rank` of `world_size`. A context manager: leaving it ends the workers.

    `num_workers`: 0 makes each batch when it is asked for. `prefetch_steps`: made ahead at most. A batch's memory is used again
    when nothing refers to its arrays any more.
    """

    def __init__(
        self, recipe: Recipe, num_workers: int = 0, rank: int = 0, world_size: int = 1, prefetch_steps: int = 2
    ) -> None:
        num_images = len(recipe.images)
        if num_images == 0:
            raise DataError("the training set has no images; expected at least one")
        if len(recipe.labels) != num_images:
            raise DataError(f"{num_images} training images, but labels of {len(recipe.labels)}; prepare the data again")
        train = recipe.train
        self._recipe = recipe
        self._sampler = Sampler(num_images, train.global_batch, train.seed, rank, world_size)
        self._maker = Maker(recipe) if num_workers == 0 else None
        self._pool = Pool(recipe, self._sampler.most(), num_workers, prefetch_steps) if num_workers else None

    def num_steps(self) -> int:
        """Optimizer steps of an epoch; the last one may have fewer images."""
        return self._sampler.num_steps()

    def steps(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """This rank's share of each optimizer step of `epoch` (from 0), from step `first` on."""
        shares = (Share(epoch, samples.tolist()) for samples in self._sampler.shares(epoch, first))
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
        assert self._maker is not None
        recipe = self._recipe
        slot = Layout(1, len(share.samples), recipe.size, recipe.max_objects()).private()
        self._maker.make(share.epoch, share.samples, slot)
        return batch_of(slot, share.samples, recipe.colour_later)
