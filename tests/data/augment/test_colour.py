"""Colour against ultralytics' own formula, in OpenCV's HSV."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from nightowl.data.augment.colour import Gains, apply_gains

GAINS: list[Gains] = [
    (0.012, 0.7, 0.4),
    (-0.015, 0.7, -0.4),
    (0.01, -0.7, 0.4),
    (-0.006, -0.3, -0.2),
    (0.0, 0.5, 0.0),
    (0.0, 0.0, 0.3),
    (0.3, 0.0, 0.0),
    (-0.5, 0.2, 0.1),
]


def by_upstream(rgb: NDArray[np.uint8], gains: Gains) -> NDArray[np.uint8]:
    """`RandomHSV.apply_image` of ultralytics 8.4.190, from given gains."""
    x = np.arange(256, dtype=np.float64)
    hue = ((x + gains[0] * 180) % 180).astype(np.uint8)
    saturation, value = (np.clip(x * (gain + 1), 0, 255).astype(np.uint8) for gain in gains[1:])
    table = np.stack((hue, saturation, value), -1).reshape(1, 256, 3)
    hsv = cv2.cvtColor(np.ascontiguousarray(rgb.transpose(1, 2, 0)), cv2.COLOR_RGB2HSV)
    return cv2.cvtColor(cv2.LUT(hsv, table), cv2.COLOR_HSV2RGB).transpose(2, 0, 1)


def every_colour() -> NDArray[np.uint8]:
    """A grid through the whole cube, (3, 33, 1089), grey and pure colours among it."""
    levels = np.linspace(0, 255, 33).astype(np.uint8)
    return np.stack(np.meshgrid(levels, levels, levels, indexing="ij")).reshape(3, 33, -1)


@pytest.mark.parametrize("gains", GAINS)
def test_colours_come_out_as_upstreams(gains: Gains) -> None:
    """What is left is upstream's rounding of hue to 2 degrees: up to 4 levels at full saturation, stretched by the gains."""
    planes = every_colour()
    expected = by_upstream(planes, gains).astype(int)
    apply_gains(planes, gains)
    off = planes - expected
    assert np.abs(off).max() <= 8
    assert np.abs(off).mean() < 1.3
    assert abs(off.mean()) < 0.5


def test_grey_stays_grey() -> None:
    planes = np.repeat(np.arange(256, dtype=np.uint8)[None, None], 3, axis=0)
    apply_gains(planes, (0.015, 0.7, 0.2))
    assert np.array_equal(planes[0], planes[1]) and np.array_equal(planes[1], planes[2])
    assert np.array_equal(planes[0, 0], np.minimum(np.arange(256) * 1.2, 255).astype(np.uint8))


def test_no_gains_change_nothing() -> None:
    planes = every_colour()
    apply_gains(planes, (0.0, 0.0, 0.0))
    assert np.array_equal(planes, every_colour())
