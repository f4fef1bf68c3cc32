"""From an image to what the network sees, and back. Measured is shipped: training's validation, every runner and
`nightowl predict` go through here, and the pixels equal those of ultralytics' LetterBox (centred, scaling up allowed).

Shapes: H, W the image's sides; S the network's side; N boxes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nightowl.data.resize import letterbox_size, resized

PADDING_GREY = 114


@dataclass(frozen=True, slots=True)
class Letterbox:
    """How an image of `width` x `height` pixels was laid into the square: first scaled an axis, then shifted by the padding."""

    width: int
    height: int
    scale_x: float
    scale_y: float
    pad_x: int
    pad_y: int

    def to_image(self, boxes_xyxy: NDArray[np.float32]) -> NDArray[np.float32]:
        """Boxes (N, 4) in pixels of the square, as boxes in pixels of the image, clipped to it."""
        shift = np.array([self.pad_x, self.pad_y] * 2, np.float32)
        scale = np.array([self.scale_x, self.scale_y] * 2, np.float32)
        limit = np.array([self.width, self.height] * 2, np.float32)
        inside: NDArray[np.float32] = np.clip((boxes_xyxy - shift) / scale, np.float32(0), limit)
        return inside


def plan_letterbox(width: int, height: int, size: int) -> tuple[Letterbox, tuple[int, int]]:
    """Where an image goes in a square of `size`, and its (width, height) there; the spare pixel goes right or below."""
    inner_width, inner_height = letterbox_size(width, height, size)
    pad_x, pad_y = round((size - inner_width) / 2 - 0.1), round((size - inner_height) / 2 - 0.1)
    plan = Letterbox(width, height, inner_width / width, inner_height / height, pad_x, pad_y)
    return plan, (inner_width, inner_height)


def letterbox(image_bgr: NDArray[np.uint8], size: int) -> tuple[NDArray[np.float32], Letterbox]:
    """The image (H, W, 3) as the network's input (3, S, S), RGB in 0..1, and how it was laid there."""
    height, width = image_bgr.shape[:2]
    plan, _ = plan_letterbox(width, height, size)
    inner = resized(image_bgr, letterbox_size(width, height, size))
    chw = np.ascontiguousarray(padded(inner, plan, size)[..., ::-1].transpose(2, 0, 1))
    return chw.astype(np.float32) / np.float32(255), plan


def padded(inner: NDArray[np.uint8], plan: Letterbox, size: int) -> NDArray[np.uint8]:
    """An image already scaled by `plan` (h, w, 3), in its place on the grey square (S, S, 3)."""
    square = np.full((size, size, 3), PADDING_GREY, np.uint8)
    square[plan.pad_y : plan.pad_y + inner.shape[0], plan.pad_x : plan.pad_x + inner.shape[1]] = inner
    return square
