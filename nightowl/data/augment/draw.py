"""What is drawn at random for one training sample, as a function of (seed, epoch, sample) alone.

The distributions are those of ultralytics 8.4.190 (`v8_transforms`, with mosaic partners from the whole set). Each quantity has
its own place in one block of uniform numbers, so that changing one param does not redraw the others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nightowl.params import AugmentParams

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
class Source:
    """What there is to draw from: the number of images, the training size in pixels, params, and the epoch's probabilities."""

    num_images: int
    size: int
    params: AugmentParams
    mosaic: float
    mixup: float


def draw(source: Source, seed: int, epoch: int, sample: int) -> Draw:
    """The draw of image number `sample` in `epoch` (from 0)."""
    random = np.random.Generator(np.random.Philox(key=np.array([seed << 32 | epoch, sample], dtype=np.uint64)))
    uniform = random.random(_FLIPS.stop)
    augment = source.params
    whether, partner = uniform[_MIXUP]
    mixed, ratio = None, 1.0
    if whether < source.mixup:
        mixed = _view(source, int(partner * source.num_images), uniform[_PER_VIEW : 2 * _PER_VIEW])
        ratio = float(random.beta(_MIX_BETA, _MIX_BETA))
    hue, saturation, value = (2 * uniform[_HSV] - 1) * (augment.hsv_h, augment.hsv_s, augment.hsv_v)
    up_down, left_right = uniform[_FLIPS]
    return Draw(
        view=_view(source, sample, uniform[:_PER_VIEW]),
        mixed=mixed,
        mix_ratio=ratio,
        hsv_gains=(float(hue), float(saturation), float(value)),
        flip_up_down=bool(up_down < augment.flip_up_down),
        flip_left_right=bool(left_right < augment.flip_left_right),
    )


def _view(source: Source, first: int, uniform: NDArray[np.float64]) -> View:
    params, size = source.params, source.size
    images, centre = (first,), None
    signed = (2 * uniform - 1).tolist()
    if uniform[0] < source.mosaic:
        images = (first, *(uniform[1:4] * source.num_images).astype(np.int64).tolist())
        y, x = (size / 2 + uniform[4:6] * size).astype(np.int64).tolist()
        centre = (x, y)
    return View(
        images=images,
        centre=centre,
        perspective=(signed[6] * params.perspective, signed[7] * params.perspective),
        degrees=signed[8] * params.degrees,
        scale=1 + signed[9] * params.scale,
        shear_degrees=(signed[10] * params.shear, signed[11] * params.shear),
        translate=(0.5 + signed[12] * params.translate, 0.5 + signed[13] * params.translate),
    )
