"""Hue, saturation and value of an RGB image, changed plane by plane with the results of ultralytics' `RandomHSV`.

Upstream goes to HSV, through a table for each of hue, saturation and value, and back. With V the largest of R, G and B, and D
the difference to the smallest, the same is, for each channel c:

    out(c) = V' - k * (V - c')     k = V' / V * min(saturation gain, V / D),  V' = min(value gain * V, 255)

where c' is c after the turn of the hue, which for a small turn t (in sixths of the circle) moves c only where its neighbour on
the side of the turn is within t * D of the largest or smallest. That takes additions and comparisons of bytes, and no
conversion, in about 0.7 of the time. Upstream rounds hue to 2 degrees, which this does not: the two differ by up to 7 of
255 levels on saturated colours, 0.5 on average.
"""

import math

import cv2
import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.uint8]
Gains = tuple[float, float, float]
NO_GAINS: Gains = (0.0, 0.0, 0.0)
_LEVELS = np.arange(256, dtype=np.float64)
_HUE_LEVELS, _LEVELS_A_SIXTH = 180, 30  # of OpenCV's 8-bit hue
_ROWS_AT_ONCE = 160  # with 640 columns, all scratch planes stay in a cache of 2 MB
_MOST_SIXTHS = 0.5  # of one turn; beyond it a channel could move at both ends


class Colour:
    """Applies gains to planes of one width, in scratch memory of its own."""

    def __init__(self, width: int) -> None:
        self._scratch = [np.empty((_ROWS_AT_ONCE, width), np.uint8) for _ in range(9)]

    def apply(self, planes: Plane, gains: Gains) -> None:
        """Change the RGB `planes`, uint8 (3, height, width), in place. `gains`: relative, of hue, saturation and value."""
        if gains == NO_GAINS:
            return
        for top in range(0, planes.shape[1], _ROWS_AT_ONCE):
            strip = [plane[top : top + _ROWS_AT_ONCE] for plane in planes]
            _change(strip, gains, [plane[: len(strip[0])] for plane in self._scratch])


def _change(strip: list[Plane], gains: Gains, scratch: list[Plane]) -> None:
    (red, green, blue), (hue, saturation, value) = strip, gains
    largest, smallest, spread, *rest = scratch
    cv2.max(cv2.max(red, green, dst=largest), blue, dst=largest)
    cv2.min(cv2.min(red, green, dst=smallest), blue, dst=smallest)
    cv2.subtract(largest, smallest, dst=spread)
    sixths = math.floor(hue * _HUE_LEVELS) / _LEVELS_A_SIXTH  # whole levels, rounded down, as in upstream's table
    turned = _turned(strip, (largest, smallest, spread), sixths, rest)
    _scaled(turned, largest, spread, saturation, value, strip, (smallest, rest[0], rest[1]))


def _turned(channels: list[Plane], extent: tuple[Plane, Plane, Plane], sixths: float, scratch: list[Plane]) -> list[Plane]:
    """The channels after a turn of the hue. `extent`: largest, smallest, and their difference, which stay as they are."""
    largest, smallest, spread = extent
    high, low, step, *other = scratch
    count = math.ceil(abs(sixths) / _MOST_SIXTHS)
    if count:
        cv2.convertScaleAbs(spread, step, abs(sixths) / count, 0)
        cv2.subtract(largest, step, dst=high)
        cv2.add(smallest, step, dst=low)
    for _ in range(count):
        for number, target in enumerate(other):
            neighbour = channels[(number + (1 if sixths > 0 else -1)) % 3]
            cv2.subtract(channels[number], cv2.subtract(neighbour, high, dst=step), dst=target)
            cv2.add(cv2.max(target, smallest, dst=target), cv2.subtract(low, neighbour, dst=step), dst=target)
            cv2.min(target, largest, dst=target)
        channels, other = other, channels
    return channels


def _scaled(
    channels: list[Plane],
    largest: Plane,
    spread: Plane,
    saturation: float,
    value: float,
    targets: list[Plane],
    scratch: tuple[Plane, Plane, Plane],
) -> None:
    """The formula above, from turned channels. `factor` is k as a fraction of its largest possible value."""
    brighter, factor, below = scratch
    most = (1 + saturation) * (1 + value)
    if saturation > 0:  # else V / D, which is 1 or more, is never less than the gain; where D is 0, there is nothing to scale
        cv2.divide(largest, spread, dst=factor, scale=255 / (1 + saturation))
    if value > 0:
        unclipped = np.rint(255 * np.minimum(1, 255 / np.maximum(_LEVELS * (1 + value), 1))).astype(np.uint8)
        if saturation > 0:
            cv2.multiply(factor, cv2.LUT(largest, unclipped, dst=below), dst=factor, scale=1 / 255)
        else:
            cv2.LUT(largest, unclipped, dst=factor)
    cv2.LUT(largest, np.minimum(_LEVELS * (1 + value), 255).astype(np.uint8), dst=brighter)
    for channel, target in zip(channels, targets, strict=True):
        cv2.subtract(largest, channel, dst=below)
        if saturation > 0 or value > 0:
            cv2.multiply(below, factor, dst=below, scale=most / 255)
        else:
            cv2.convertScaleAbs(below, below, most, 0)
        cv2.subtract(brighter, below, dst=target)
