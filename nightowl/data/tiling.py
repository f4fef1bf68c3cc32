"""Tiles of a large image: where they lie, and which boxes are learnt in each.

Tiles are squares of `size_px` pixels of the original image, laid from its top left corner; the last of a row or column is moved
back to end with the image, so that all are whole. An image smaller than a tile is one tile, smaller too.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from nightowl.data.manifest import Box, Image, Manifest, Window
from nightowl.params import TilingParams


def windows_of(width: int, height: int, tiling: TilingParams | None) -> list[Window]:
    """The tiles that cover an image of `width` x `height` pixels, row by row; without tiling the whole of it."""
    if tiling is None:
        return [Window(0, 0, width, height)]
    across, down = (_starts(side, tiling) for side in (width, height))
    size = tiling.size_px
    return [Window(x, y, min(size, width), min(size, height)) for y in down for x in across]


def boxes_in(boxes: Iterable[Box], window: Window, min_visible: float) -> tuple[Box, ...]:
    """The boxes that `window` shows by at least `min_visible` of their area, clipped to it, in its pixels.

    A crowd is kept however little of it shows: it marks where nothing can be judged.
    """
    return tuple(seen for box in boxes if (seen := _seen(box, window, min_visible)) is not None)


def in_views(dataset: Manifest, tiling: TilingParams | None) -> Manifest:
    """The data set as training looks at it: train as the tiles worth learning, val as all its tiles; test as it is."""
    if tiling is None:
        return dataset
    train, val = tiles_of(dataset.of("train"), tiling), all_tiles(dataset.of("val"), tiling)
    return replace(dataset, images=(*train, *val, *dataset.of("test")))


def all_tiles(images: Iterable[Image], tiling: TilingParams | None) -> Iterator[Image]:
    """Every view of `images`, one after the other."""
    for image in images:
        for window in windows_of(image.width, image.height, tiling):
            yield part_of(image, window, boxes_in(image.boxes, window, tiling.min_visible if tiling else 0))


def tiles_of(images: Iterable[Image], tiling: TilingParams) -> Iterator[Image]:
    """Every tile of `images` with a box in it, and `empty_fraction` of the others.

    Which of those is a function of the image's content and the tile's place, so that growing the data changes none. A tile that
    shows too little of an object to learn it is neither: it would be taught as background.
    """
    for image in images:
        for window in windows_of(image.width, image.height, tiling):
            boxes = boxes_in(image.boxes, window, tiling.min_visible)
            if boxes or (not boxes_in(image.boxes, window, 0) and _chosen(image.sha256, window, tiling.empty_fraction)):
                yield part_of(image, window, boxes)


def part_of(image: Image, window: Window, boxes: tuple[Box, ...]) -> Image:
    """The part of `image` in `window`, with `boxes` in its pixels."""
    return replace(image, width=window.width, height=window.height, boxes=boxes, window=window)


def _starts(side: int, tiling: TilingParams) -> list[int]:
    last = side - tiling.size_px
    if last <= 0:
        return [0]
    step = max(round(tiling.size_px * (1 - tiling.overlap)), 1)
    return [*range(0, last, step), last]


def _seen(box: Box, window: Window, min_visible: float) -> Box | None:
    x1, x2 = (min(max(x - window.x, 0), window.width) for x in (box.x1, box.x2))
    y1, y2 = (min(max(y - window.y, 0), window.height) for y in (box.y1, box.y2))
    if x2 <= x1 or y2 <= y1:
        return None
    visible = (x2 - x1) * (y2 - y1) / ((box.x2 - box.x1) * (box.y2 - box.y1))
    enough = box.ignore or visible >= min_visible
    return box._replace(x1=x1, y1=y1, x2=x2, y2=y2) if enough else None


def _chosen(sha256: str, window: Window, fraction: float) -> bool:
    digest = hashlib.sha256(f"tile:{sha256}:{window.x}:{window.y}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 < fraction
