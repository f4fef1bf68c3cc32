"""Hue, saturation and value of whole images, by the tables that ultralytics' `RandomHSV` uses.

OpenCV's 8-bit HSV: hue in [0, 180), saturation and value in [0, 255]. Gains are those of `Draw.hsv_gains`.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Gains = tuple[float, float, float]
NO_GAINS: Gains = (0.0, 0.0, 0.0)
_LEVELS = np.arange(256, dtype=np.float64)


def tables(gains: Gains) -> tuple[Pixels, Pixels, Pixels]:
    """What each level of hue, saturation and value becomes: three times uint8 (256,)."""
    hue, saturation, value = gains
    of_hue = ((_LEVELS + hue * 180) % 180).astype(np.uint8)
    of_saturation = np.clip(_LEVELS * (saturation + 1), 0, 255).astype(np.uint8)
    of_value = np.clip(_LEVELS * (value + 1), 0, 255).astype(np.uint8)
    return of_hue, of_saturation, of_value


class Colour:
    """Applies gains to BGR images of one size, in scratch memory of its own."""

    def __init__(self, size: int) -> None:
        self._packed = np.empty((size, size, 3), np.uint8)
        self._planes = list(np.empty((3, size, size), np.uint8))

    def apply(self, bgr: Pixels, gains: Gains, target: Pixels) -> None:
        """Write `bgr`, uint8 (S, S, 3), with `gains` applied, to the RGB planes `target` (3, S, S)."""
        if gains == NO_GAINS:
            return to_planes(bgr, self._packed, target)
        cv2.split(cv2.cvtColor(bgr, cv2.COLOR_BGR2HSV, dst=self._packed), self._planes)
        for plane, table in zip(self._planes, tables(gains), strict=True):
            cv2.LUT(plane, table, dst=plane)
        cv2.cvtColor(cv2.merge(self._planes, dst=self._packed), cv2.COLOR_HSV2RGB, dst=self._packed)
        cv2.split(self._packed, list(target))
        return None


def to_planes(bgr: Pixels, packed: Pixels, target: Pixels) -> None:
    """Write `bgr` (S, S, 3) to the RGB planes `target` (3, S, S), by way of `packed`: OpenCV splits rows with gaps slowly."""
    np.copyto(packed, bgr)
    cv2.split(packed, [target[2], target[1], target[0]])
