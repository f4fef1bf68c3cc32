"""COCO's size classes of objects, by the area of the box in pixels of the image; an area on a border belongs to both sides."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Size = Literal["small", "medium", "large"]
SIZES: tuple[Size, ...] = get_args(Size)
EVERY_AREA = (0.0, 1e10)
AREAS: dict[Size, tuple[float, float]] = {"small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, 1e10)}


def areas(boxes_xyxy: NDArray[np.floating]) -> NDArray[np.float64]:
    """Area (N,) of boxes_xyxy (N, 4), worked out in double precision as COCO's tools do."""
    boxes = boxes_xyxy.astype(np.float64)
    area: NDArray[np.float64] = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return area


def within(boxes_xyxy: NDArray[np.floating], area: tuple[float, float]) -> NDArray[np.bool_]:
    """Which boxes (N,) have an area in the closed range."""
    own = areas(boxes_xyxy)
    return (own >= area[0]) & (own <= area[1])
