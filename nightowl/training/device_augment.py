"""What a loader with `colour_later` leaves to the device: HSV gains, applied to whole batches as the CPU would.

The formula and its source are in `nightowl.data.augment.colour`; rounding alone differs, by 1 of 255 levels at most.

N: images; S: the training size.
"""

import torch
from torch import Tensor

_HUE_LEVELS, _LEVELS_A_SIXTH, _MOST_SIXTHS = 180, 30, 0.5


def apply_hsv_gains(images: Tensor, gains: Tensor) -> Tensor:
    """RGB images with their gains applied, scaled to 0..1: float32 (N, 3, S, S), on the device of `images`.

    `images`: uint8 (N, 3, S, S). `gains`: float32 (N, 3), as `Batch.hsv_gains` has them; on the CPU, or the device has to be
    waited for.
    """
    num_turns = int(_num_turns(_sixths(gains[:, 0])).max()) if gains.any() else 0
    hue, saturation, value = gains.to(images.device, torch.float32).T[:, :, None, None, None]
    pixels = images.float()
    largest, smallest = pixels.amax(1, keepdim=True), pixels.amin(1, keepdim=True)
    turned = _turned(pixels, largest, smallest, _sixths(hue), num_turns)
    of_value = torch.minimum(1 + value, 255 / largest.clamp(min=1))
    of_saturation = torch.minimum(1 + saturation, largest / (largest - smallest).clamp(min=1))
    brighter = torch.floor((largest * (1 + value)).clamp(max=255))
    return (brighter - torch.round(of_value * of_saturation * (largest - turned))).clamp(min=0) / 255


def _sixths(hue: Tensor) -> Tensor:
    """The turn of a hue gain in sixths of the circle: whole levels, rounded down, as in upstream's table."""
    return torch.floor(hue * _HUE_LEVELS) / _LEVELS_A_SIXTH


def _num_turns(sixths: Tensor) -> Tensor:
    return torch.ceil(sixths.abs() / _MOST_SIXTHS)


def _turned(pixels: Tensor, largest: Tensor, smallest: Tensor, sixths: Tensor, num_turns: int) -> Tensor:
    """The channels after a turn of each image's hue, in steps of at most half a sixth of the circle."""
    counts = _num_turns(sixths)
    step = torch.round((largest - smallest) * sixths.abs() / counts.clamp(min=1))
    for number in range(num_turns):
        neighbour = torch.where(sixths > 0, pixels.roll(-1, 1), pixels.roll(1, 1))
        lowered = torch.maximum(pixels - (neighbour - largest + step).clamp(min=0), smallest)
        moved = torch.minimum(lowered + (smallest + step - neighbour).clamp(min=0), largest)
        pixels = torch.where(number < counts, moved, pixels)
    return pixels
