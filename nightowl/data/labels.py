"""The boxes of a whole training set in three arrays, so that they are shared and sent to workers cheaply."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # a worker needs the arrays only, and starts sooner without the manifest's imports
    from nightowl.data.manifest import Image


@dataclass(frozen=True, slots=True)
class Labels:
    """Boxes of N images, M in all, one image after the other.

    `boxes_xyxy_norm`: float64 (M, 4), fractions of the image's width and height. `class_ids`: int64 (M,). `starts`: int64
    (N + 1,); image i has the boxes from `starts[i]` to `starts[i + 1]`.
    """

    boxes_xyxy_norm: NDArray[np.float64]
    class_ids: NDArray[np.int64]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of_all(self, images: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.int64], list[int]]:
        """Boxes and class ids of several images, one after the other, and how many each has."""
        parts = [slice(self.starts[image], self.starts[image + 1]) for image in images]
        boxes, class_ids = (np.concatenate([array[part] for part in parts]) for array in (self.boxes_xyxy_norm, self.class_ids))
        return boxes, class_ids, [int(part.stop - part.start) for part in parts]

    def most(self) -> int:
        """The largest number of boxes that one image has."""
        return int(np.diff(self.starts).max(initial=0))


def labels_of(images: "Sequence[Image]") -> Labels:
    """The boxes of `images` in their order. Crowds are left out: they are neither object nor background."""
    rows, ids, counts = list[tuple[float, float, float, float]](), list[int](), list[int]()
    for image in images:
        boxes = [box for box in image.boxes if not box.ignore]
        width, height = image.width, image.height
        rows += [(box.x1 / width, box.y1 / height, box.x2 / width, box.y2 / height) for box in boxes]
        ids += [box.class_id for box in boxes]
        counts.append(len(boxes))
    return Labels(
        np.array(rows, dtype=np.float64).reshape(-1, 4),
        np.array(ids, dtype=np.int64),
        np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
    )
