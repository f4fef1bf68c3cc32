"""To what size an image is brought for the network: the one place where its sides are rounded.

Ultralytics rounds in two ways. Its training set (`load_image`) rounds the short side up; LetterBox, by which nightowl measures
and ships, rounds to the nearest. The two differ by one pixel wherever the scaled short side has a fraction of at most one half.
"""

import math
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from nightowl.data.images import Size

Rule = Literal["load_image", "letterbox"]


def training_size(width: int, height: int, image_size: int) -> Size:
    """What ultralytics' `BaseDataset.load_image` makes of an image: the long side `image_size`, the short one rounded up."""
    ratio = image_size / max(height, width)
    if ratio == 1:
        return Size(width, height)
    return Size(min(math.ceil(width * ratio), image_size), min(math.ceil(height * ratio), image_size))


def letterbox_size(width: int, height: int, image_size: int) -> Size:
    """What LetterBox makes of an image before it pads: the long side `image_size`, the short one rounded, at least 1."""
    scale = min(image_size / height, image_size / width)
    return Size(max(round(width * scale), 1), max(round(height * scale), 1))


def resized(image_bgr: NDArray[np.uint8], size: Size) -> NDArray[np.uint8]:
    """The image (H, W, 3) at `size`, bilinear as in both; the same array when it has that size already."""
    if image_bgr.shape[:2] == (size.height, size.width):
        return image_bgr
    scaled: NDArray[np.uint8] = cv2.resize(image_bgr, tuple(size), interpolation=cv2.INTER_LINEAR)
    return scaled
