"""What is drawn at random for one training sample.

The distributions are those of ultralytics 8.4.190 (`v8_transforms`, with mosaic partners from the whole set). Each quantity has
its own place in one block of uniform numbers, so that changing one param does not redraw the others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_PER_VIEW = 14  # mosaic, 3 partners, y and x of the centre, 2 perspective, angle, scale, 2 shear, 2 translate
_MIXUP = slice(2 * _PER_VIEW, 2 * _PER_VIEW + 2)  # whether, partner
_HSV = slice(_MIXUP.stop, _MIXUP.stop + 3)
_FLIPS = slice(_HSV.stop, _HSV.stop + 2)  # up-down, left-right
_MIX_BETA = 32.0


@dataclass(frozen=True, slots=True)
class View:
    """One image, or four as a mosaic of twice the training size, seen through one affine or perspective transform.

    `centre`: x and y, in pixels of the mosaic, where its four images meet; None without mosaic. `translate`: fractions of the
    training size (0.5 is centred). `perspective`: x and y, as in the third row of the matrix.
    """

    images: tuple[int, ...]
    centre: tuple[int, int] | None
    degrees: float
    scale: float
    shear_degrees: tuple[float, float]
    translate: tuple[float, float]
    perspective: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Draw:
    """All that is random about one sample. `mixed`: a second view to blend in; `mix_ratio`: the weight of the first."""

    view: View
    mixed: View | None
    mix_ratio: float
    hsv_gains: tuple[float, float, float]
    flip_up_down: bool
    flip_left_right: bool


@dataclass(frozen=True, slots=True)
class Ranges:
    """What the samples of an epoch are drawn from, by the names of `AugmentParams`. `size`: of the training, in pixels."""

    num_images: int
    size: int
    mosaic: float
    mixup: float
    hsv: tuple[float, float, float]
    degrees: float
    translate: float
    scale: float
    shear: float
    perspective: float
    flip_up_down: float
    flip_left_right: float


def draw(ranges: Ranges, sample: int, random: np.random.Generator) -> Draw:
    """The draw of image number `sample`, from the stream that belongs to it and its epoch."""
    uniform = random.random(_FLIPS.stop)
    whether, partner = uniform[_MIXUP]
    mixed, ratio = None, 1.0
    if whether < ranges.mixup:
        mixed = _view(ranges, int(partner * ranges.num_images), uniform[_PER_VIEW : 2 * _PER_VIEW])
        ratio = float(random.beta(_MIX_BETA, _MIX_BETA))
    hue, saturation, value = (2 * uniform[_HSV] - 1) * ranges.hsv
    up_down, left_right = uniform[_FLIPS]
    return Draw(
        view=_view(ranges, sample, uniform[:_PER_VIEW]),
        mixed=mixed,
        mix_ratio=ratio,
        hsv_gains=(float(hue), float(saturation), float(value)),
        flip_up_down=bool(up_down < ranges.flip_up_down),
        flip_left_right=bool(left_right < ranges.flip_left_right),
    )


def _view(ranges: Ranges, first: int, uniform: NDArray[np.float64]) -> View:
    size = ranges.size
    images, centre = (first,), None
    signed = (2 * uniform - 1).tolist()
    if uniform[0] < ranges.mosaic:
        images = (first, *(uniform[1:4] * ranges.num_images).astype(np.int64).tolist())
        y, x = (size / 2 + uniform[4:6] * size).astype(np.int64).tolist()
        centre = (x, y)
    return View(
        images=images,
        centre=centre,
        perspective=(signed[6] * ranges.perspective, signed[7] * ranges.perspective),
        degrees=signed[8] * ranges.degrees,
        scale=1 + signed[9] * ranges.scale,
        shear_degrees=(signed[10] * ranges.shear, signed[11] * ranges.shear),
        translate=(0.5 + signed[12] * ranges.translate, 0.5 + signed[13] * ranges.translate),
    )
