"""What a loader hands to a training loop: the contract between the two, in plain numpy, so that neither knows the other.

N: images of this batch; S: the training size in pixels; M: boxes of all its images together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Batch:
    """Augmented images with their boxes, of one optimizer step or of a part of one.

    `images`: uint8 (N, 3, S, S), RGB, contiguous. `boxes_cxcywh_norm`: float32 (M, 4), fractions of S. `class_ids`: int64 (M,).
    `owners`: int64 (M,), ascending: which of the N images a box belongs to. `samples`: int64 (N,), the images' numbers in the
    training set. `hsv_gains`: float32 (N, 3), relative gains of hue, saturation and value that the images still lack; None when
    there is nothing left to apply.
    """

    images: NDArray[np.uint8]
    boxes_cxcywh_norm: NDArray[np.float32]
    class_ids: NDArray[np.int64]
    owners: NDArray[np.int64]
    samples: NDArray[np.int64]
    hsv_gains: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.images)

    def part(self, first: int, last: int) -> "Batch":
        """Images `first` to `last` (exclusive) with their boxes: a micro-batch. Arrays are views."""
        low, high = np.searchsorted(self.owners, [first, last])
        return Batch(
            images=self.images[first:last],
            boxes_cxcywh_norm=self.boxes_cxcywh_norm[low:high],
            class_ids=self.class_ids[low:high],
            owners=self.owners[low:high] - first,
            samples=self.samples[first:last],
            hsv_gains=None if self.hsv_gains is None else self.hsv_gains[first:last],
        )


class Loader(Protocol):
    """Batches as a function of (seed, epoch, step) alone: not of workers, ranks or of what was loaded before."""

    def num_steps(self) -> int:
        """Optimizer steps of an epoch; the last one may have fewer images."""

    def steps(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """This rank's share of each optimizer step of `epoch` (from 0), from step `first` on. A share may be empty (N = 0)."""
