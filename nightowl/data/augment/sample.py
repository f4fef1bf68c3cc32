"""One augmented training sample: the draw carried out, pixels and boxes."""

from typing import NamedTuple, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from nightowl.data.augment import boxes as at
from nightowl.data.augment.colour import NO_GAINS, Colour
from nightowl.data.augment.compose import Canvas
from nightowl.data.augment.draw import Draw, View
from nightowl.data.augment.geometry import canvas_size, is_straight, matrix, piece, tiles
from nightowl.data.labels import Labels

Pixels = NDArray[np.uint8]


class Images(Protocol):
    """Decoded images whose long side is the training size."""

    def __len__(self) -> int: ...

    def image(self, index: int) -> Pixels:
        """BGR, uint8 (height, width, 3); not to be written to."""


class Objects(NamedTuple):
    """M objects of one sample: boxes float64 (M, 4), in pixels xyxy or normalised cxcywh, as said; class ids int64 (M,)."""

    boxes: NDArray[np.float64]
    class_ids: NDArray[np.int64]


class Augmenter:
    """Carries out draws on one training set; scratch memory makes it fit for one thread only.

    `colour_later`: HSV gains are not applied, the caller does it.
    """

    def __init__(self, images: Images, labels: Labels, size: int, colour_later: bool = False) -> None:
        self._images = images
        self._labels = labels
        self._size = size
        self._colour, self._colour_later = Colour(size), colour_later
        self._canvas, self._second = Canvas(size), Canvas(size)

    def augment(self, drawn: Draw, target: Pixels) -> Objects:
        """Write the image, RGB planes (3, S, S), to `target`. Returns its objects, boxes_cxcywh_norm."""
        objects = self._compose(drawn.view, self._canvas)
        if drawn.mixed is not None:
            more = self._compose(drawn.mixed, self._second)
            self._canvas.blend(self._second, drawn.mix_ratio)
            objects = Objects(*(np.concatenate(both) for both in zip(objects, more, strict=True)))
        self._colour.apply(self._canvas.image, NO_GAINS if self._colour_later else drawn.hsv_gains, target)
        _flip(drawn, target)
        return Objects(_flipped_norm(objects.boxes, drawn, self._size), objects.class_ids)

    def _compose(self, view: View, canvas: Canvas) -> Objects:
        sources = [self._images.image(image) for image in view.images]
        sizes = [(source.shape[1], source.shape[0]) for source in sources]
        laid, whole = tiles(view, sizes, self._size), canvas_size(view, sizes, self._size)
        to_training = matrix(view, whole, self._size)
        found = [self._labels.of(image) for image in view.images]
        in_pixels = [norm * (size * 2) for (norm, _), size in zip(found, sizes, strict=True)]
        on_canvas = at.on_canvas(in_pixels, laid)
        if view.centre is not None:
            on_canvas = at.clipped(on_canvas, whole)
        there = at.clipped(at.transformed(on_canvas, to_training), (self._size, self._size))
        kept = at.kept(on_canvas, there, view.scale)
        canvas.clear()
        if is_straight(view):
            pieces = [piece(tile, to_training, self._size) for tile in laid]
            for source, done in zip(sources, pieces, strict=True):
                if done is not None:
                    canvas.place(source, done)
            counts = [len(each) for each in in_pixels]
            there = at.clipped(at.followed(on_canvas, laid, pieces, counts, to_training), (self._size, self._size))
        else:
            for source, tile in zip(sources, laid, strict=True):
                canvas.warp(source, tile, to_training, view.perspective != (0, 0))
        return Objects(there[kept], np.concatenate([ids for _, ids in found])[kept])


def _flip(drawn: Draw, planes: Pixels) -> None:
    how = {(True, False): 0, (False, True): 1, (True, True): -1}.get((drawn.flip_up_down, drawn.flip_left_right))
    if how is not None:
        for plane in planes:
            cv2.flip(plane, how, dst=plane)


def _flipped_norm(boxes: NDArray[np.float64], drawn: Draw, size: int) -> NDArray[np.float64]:
    norm = np.concatenate((boxes[:, :2] + boxes[:, 2:], 2 * (boxes[:, 2:] - boxes[:, :2])), axis=1) / (2 * size)
    if drawn.flip_left_right:
        norm[:, 0] = 1 - norm[:, 0]
    if drawn.flip_up_down:
        norm[:, 1] = 1 - norm[:, 1]
    return norm
