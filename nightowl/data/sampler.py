"""Which images make up each optimizer step: a function of (seed, epoch, step) alone.

An epoch is one permutation of the whole set; step b is its b-th slice of `global_batch` images, and a rank takes its
contiguous share of the slice. So a position is two integers, and another world size gets the same images in each step.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nightowl.data.streams import WHOLE_EPOCH, Streams


@dataclass(frozen=True, slots=True)
class Sampler:
    """`rank` of `world_size` processes, of which each sees its own share of every step."""

    num_images: int
    global_batch: int
    seed: int
    rank: int = 0
    world_size: int = 1

    def num_steps(self) -> int:
        """Optimizer steps of an epoch; the last one may have fewer images than the others."""
        return -(-self.num_images // self.global_batch)

    def most(self) -> int:
        """The largest share that any rank gets."""
        return -(-min(self.global_batch, self.num_images) // self.world_size)

    def shares(self, epoch: int, first: int = 0) -> list[NDArray[np.int64]]:
        """This rank's images in each step of `epoch` (from 0), from step `first` on."""
        images = Streams().of(self.seed, epoch, WHOLE_EPOCH).permutation(self.num_images)
        return [self._own(images[step * self.global_batch :][: self.global_batch]) for step in range(first, self.num_steps())]

    def _own(self, images: NDArray[np.int64]) -> NDArray[np.int64]:
        low, high = _share(len(images), self.rank, self.world_size)
        return images[low:high]


def _share(number: int, rank: int, world_size: int) -> tuple[int, int]:
    return number * rank // world_size, number * (rank + 1) // world_size
