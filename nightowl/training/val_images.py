"""The images of val as the network sees them, from the prepared cache: the pixels that the evaluator makes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nightowl.data.cache.packed import PackedImages
from nightowl.evaluation.preprocess import Letterbox, padded, plan_letterbox


@dataclass(frozen=True)
class PackedVal:
    """Images that were scaled to lie in a square of `size`, laid into it."""

    packed: PackedImages
    size: int

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, index: int) -> tuple[NDArray[np.uint8], Letterbox]:
        width, height = self.packed.original_size(index)
        plan, _ = plan_letterbox(width, height, self.size)
        square = padded(self.packed.image(index), plan, self.size)
        return np.ascontiguousarray(square[..., ::-1].transpose(2, 0, 1)), plan
