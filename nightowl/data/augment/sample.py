"""One augmented training sample: the draw carried out, pixels and boxes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from nightowl.data.augment import boxes as at
from nightowl.data.augment import compose
from nightowl.data.augment.draw import Draw, View
from nightowl.data.augment.geometry import canvas_size, is_straight, matrix, piece, straight, tiles
from nightowl.data.labels import Labels

if TYPE_CHECKING:
    from nightowl.data.augment.colour import Gains

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
        self._apply_gains = None if colour_later else _apply_gains()
        self._image, self._other = np.empty((2, size, size, 3), np.uint8)
        self._spill = compose.spill_memory(size)

    def augment(self, drawn: Draw, target: Pixels) -> Objects:
        """Write the image, RGB planes (3, S, S), to `target`. Returns its objects, boxes_cxcywh_norm."""
        boxes, class_ids = self._compose(drawn.view, self._image)
        if drawn.mixed is not None:
            more, more_ids = self._compose(drawn.mixed, self._other)
            compose.blend(self._image, self._other, drawn.mix_ratio)
            boxes, class_ids = np.concatenate((boxes, more)), np.concatenate((class_ids, more_ids))
        red, green, blue = target
        cv2.split(self._image, [blue, green, red])
        if self._apply_gains is not None:
            self._apply_gains(target, drawn.hsv_gains)
        _flip(drawn, target)
        return Objects(_flipped_norm(boxes, drawn, self._size), class_ids)

    def _compose(self, view: View, image: Pixels) -> Objects:
        """Draw the view into `image`. Returns its objects, boxes_xyxy in pixels."""
        size, sources = self._size, [self._images.image(number) for number in view.images]
        sizes = [(source.shape[1], source.shape[0]) for source in sources]
        canvas, laid = canvas_size(view, sizes, size), tiles(view, sizes, size)
        norm, class_ids, counts = self._labels.of_all(view.images)
        before = at.on_canvas(norm, counts, laid, sizes)
        before = before if view.centre is None else at.clipped(before, *canvas)
        compose.clear(image)
        if is_straight(view):
            direct = straight(view, canvas, size)
            pieces = [piece(tile, direct, size) for tile in laid]
            for source, done in zip(sources, pieces, strict=True):
                if done is not None:
                    compose.place(image, source, done, self._spill)
            after, drawn = at.straightly(before, direct), at.followed(before, counts, laid, pieces)
        else:
            to_training = matrix(view, canvas, size)
            for source, tile in zip(sources, laid, strict=True):
                compose.warp(image, source, tile, to_training, view.perspective != (0, 0))
            after = drawn = at.transformed(before, to_training)
        kept = at.kept(before, at.clipped(after, size, size), view.scale)
        return Objects(at.clipped(drawn[kept], size, size), class_ids[kept])


def _apply_gains() -> "Callable[[Pixels, Gains], None]":
    from nightowl.data.augment.colour import apply_gains  # a second of compiler, for those alone that make colours

    return apply_gains


def _flip(drawn: Draw, planes: Pixels) -> None:
    how = {(True, False): 0, (False, True): 1, (True, True): -1}.get((drawn.flip_up_down, drawn.flip_left_right))
    if how is not None:
        for plane in planes:
            cv2.flip(plane, how, dst=plane)


def _flipped_norm(boxes: NDArray[np.float64], drawn: Draw, size: int) -> NDArray[np.float64]:
    low, high = boxes[:, :2] / size, boxes[:, 2:] / size
    centres = (low + high) / 2
    if drawn.flip_left_right:
        centres[:, 0] = 1 - centres[:, 0]
    if drawn.flip_up_down:
        centres[:, 1] = 1 - centres[:, 1]
    return np.concatenate((centres, high - low), axis=1)
