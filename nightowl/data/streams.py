"""Random numbers by key: a stream of its own for each (seed, epoch, number), however many are made and in whatever order.

Numpy's Philox takes any 128-bit key, and streams of different keys are independent. Making a generator takes 30 µs, mostly for
entropy that is then not used; giving one a new key takes 4.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_EPOCH_BITS = 32
WHOLE_EPOCH = (1 << 64) - 1  # the number of the stream that belongs to no sample


class Streams:
    """One generator, set to the stream that is asked for. For one thread."""

    def __init__(self) -> None:
        self._philox = np.random.Philox(key=0)
        self._generator = np.random.Generator(self._philox)
        self._fresh: Any = self._philox.state

    def of(self, seed: int, epoch: int, number: int) -> np.random.Generator:
        """The generator at the start of that stream; `seed` and `epoch` below 2**32. It holds until the next call."""
        key: NDArray[np.uint64] = np.array((seed << _EPOCH_BITS | epoch, number), dtype=np.uint64)
        self._fresh["state"]["key"] = key
        self._philox.state = self._fresh
        return self._generator
