"""The range that each tensor of a graph is quantised to: what a share of its values keeps within, over the calibration images.

The few values far outside would otherwise make the steps of all others coarse. One pass over the images, whatever their number:
of each tensor a histogram of magnitudes is kept, whose end doubles when something larger comes. Of a large tensor every
k-th value is counted, from another place in each image; the least and greatest are of all.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np
import onnx
from numpy.typing import NDArray

from nightowl.errors import StageFailed
from nightowl.export.graph import session, with_outputs

Range = tuple[float, float]  # least and greatest
BINS = 8192
_LEAST_END = 2.0**-64
_MOST = 32_768  # values counted of a tensor in one image; all of them would take several times as long as the network


class Magnitudes:
    """Least and greatest of the values seen, and how many have which magnitude: BINS steps from 0 to `end`, a power of two."""

    def __init__(self) -> None:
        self.counts, self.end = np.zeros(BINS, np.int64), _LEAST_END
        self.least, self.greatest, self.num_added = math.inf, -math.inf, 0

    def add(self, values: NDArray[np.float32]) -> None:
        """Raises ValueError for NaN and infinity."""
        if not values.size:
            return
        least, greatest = float(values.min()), float(values.max())
        if not math.isfinite(greatest - least):
            raise ValueError("NaN or infinity")
        self.least, self.greatest = min(self.least, least), max(self.greatest, greatest)
        while self.end < max(-least, greatest):
            self.counts = np.concatenate([self.counts.reshape(-1, 2).sum(1), np.zeros(BINS // 2, np.int64)])
            self.end *= 2
        step = values.size // _MOST | 1
        counted = values.ravel()[self.num_added % step :: step]
        self.num_added += 1
        places = (np.abs(counted) * np.float32(BINS / self.end)).astype(np.intp)
        self.counts += np.bincount(np.minimum(places, BINS - 1), minlength=BINS)

    def range_of(self, percent: float) -> Range:
        """The range that `percent` of all magnitudes keep within, rounded up to a step; of 100 the least and greatest value."""
        if percent == 100:
            return self.least, self.greatest
        counted = np.cumsum(self.counts)
        place = int(np.searchsorted(counted, percent / 100 * counted[-1]))
        limit = (place + 1) * self.end / BINS
        return max(self.least, -limit), min(self.greatest, limit)


def ranges_of(
    model: onnx.ModelProto, inputs: Iterable[NDArray[np.float32]], names: Iterable[str], percent: float
) -> Mapping[str, Range]:
    """Least and greatest for each of the tensors `names`, and for the input, over `inputs`, each (3, S, S).

    Raises:
        StageFailed: when there is no input, or a tensor holds NaN or infinity.
    """
    source, wanted = model.graph.input[0].name, list(names)
    running, seen = session(with_outputs(model, wanted)), {name: Magnitudes() for name in (source, *wanted)}
    num = 0
    for num, tensor in enumerate(inputs, start=1):
        said = running.run(wanted, {source: tensor[None]})
        for name, values in zip((source, *wanted), (tensor, *said), strict=True):
            try:
                seen[name].add(values)
            except ValueError as error:
                raise StageFailed(f"export: {name} holds {error} on calibration image {num}; train again") from error
    if not num:
        raise StageFailed("export: expected images to calibrate INT8 on, found none in train")
    return {name: magnitudes.range_of(percent) for name, magnitudes in seen.items() if magnitudes.counts.any()}
