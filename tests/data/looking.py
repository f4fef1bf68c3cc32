"""Images for tests of likeness: boards of one layout with their own faults, light and noise, and copies of an image."""

import io
from functools import cache

import cv2
import numpy as np
import numpy.typing as npt
import PIL.Image

from nightowl.boards.board import _choose_faults, _mount, _photograph
from nightowl.boards.copper import Mounting, etch, num_nodes_for
from nightowl.boards.faults import add_fault
from nightowl.boards.layout import draw_layout
from nightowl.boards.lot import draw_lot, random_source
from nightowl.data.manifest import Box

Grey = npt.NDArray[np.uint8]


@cache
def boards_of_one_layout(num: int, registration: float, size: int = 192) -> tuple[Grey, ...]:
    """`num` boards of one layout under one camera. `registration` 0 puts all at one place, 1 is that of the demo boards."""
    lot, nodes = draw_lot(0, 3), num_nodes_for(size, draw_lot(0, 3))
    layout = draw_layout(random_source(0, 1, 7), lot, nodes)
    return tuple(_board(lot, layout, nodes, size, registration, number) for number in range(num))


def _board(lot, layout, nodes, size, registration, number):  # type: ignore[no-untyped-def]
    rng = random_source(0, 5, number)
    at = _mount(rng, lot, size, nodes)
    offset = (at.offset[0] * registration, at.offset[1] * registration)
    copper = etch(layout, lot, Mounting(at.pitch_px, at.quarter_turns, at.skew * registration, offset, size, nodes))
    nets, boxes = copper.nets.copy(), list[Box]()
    for class_id in _choose_faults(rng):
        box = add_fault(rng, copper, nets, class_id, boxes)
        boxes += [box] if box else []
    return _photograph(rng, nets, lot)


COPIES = ("jpeg", "smaller", "brighter", "noisy", "cropped")


def copy_of(image: Grey, how: str) -> Grey:
    """The same photograph as another file would hold it."""
    height, width = image.shape
    noise = np.random.default_rng(1).normal(0, 6, image.shape)
    return {
        "jpeg": lambda: cv2.imdecode(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 50])[1], cv2.IMREAD_GRAYSCALE),
        "smaller": lambda: cv2.resize(image, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA),
        "brighter": lambda: np.clip(image * 1.15 + 8, 0, 255).astype(np.uint8),
        "noisy": lambda: np.clip(image + noise, 0, 255).astype(np.uint8),
        "cropped": lambda: image[height // 100 : height - height // 100, width // 100 : width - width // 100],
    }[how]()


def png(image: npt.NDArray[np.uint8]) -> bytes:
    return encoded(image, "PNG")


def encoded(image: npt.NDArray[np.uint8], image_format: str, **options: object) -> bytes:
    out = io.BytesIO()
    PIL.Image.fromarray(image).save(out, image_format, **options)
    return out.getvalue()
