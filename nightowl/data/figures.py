"""A dataset version in a few numbers, small enough to keep beside a champion and to compare tonight's data with."""

import math
from collections import Counter

from nightowl.data.manifest import Box, Image, Manifest
from nightowl.records import Record

# Upper ends of the bins of box sizes: the root of a box's share of its image's area.
SIZE_EDGES = (1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)


class DatasetFigures(Record):
    """Boxes of each class and of each size bin (the last is open), crowds not counted, and images."""

    dataset_version: str
    classes: tuple[str, ...]
    class_boxes: tuple[int, ...]
    size_boxes: tuple[int, ...]
    num_images: int
    num_background: int

    @property
    def num_boxes(self) -> int:
        return sum(self.class_boxes)


def figures_of(manifest: Manifest) -> DatasetFigures:
    """The figures of a dataset version, as it was pinned."""
    sizes = Counter(_bin(box, image) for image in manifest.images for box in image.boxes if not box.ignore)
    return DatasetFigures(
        dataset_version=manifest.version(),
        classes=manifest.classes,
        class_boxes=tuple(manifest.num_boxes().values()),
        size_boxes=tuple(sizes[number] for number in range(len(SIZE_EDGES) + 1)),
        num_images=len(manifest.images),
        num_background=sum(not image.boxes for image in manifest.images),
    )


def _bin(box: Box, image: Image) -> int:
    share = max(0.0, box.x2 - box.x1) * max(0.0, box.y2 - box.y1) / (image.width * image.height)
    return sum(math.sqrt(share) > edge for edge in SIZE_EDGES)
