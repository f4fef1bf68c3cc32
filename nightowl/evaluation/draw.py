"""Boxes with labels on an image, for people: one colour a class, text that stays readable on any ground."""

import colorsys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]
GOLDEN_RATIO = 0.618033988749895


class DrawnBox(NamedTuple):
    """A box (xyxy, pixels) with its label and colour (RGB)."""

    box_xyxy: tuple[float, float, float, float]
    label: str
    colour: Colour


def class_colour(class_id: int) -> Colour:
    """A strong colour (RGB), the same for a class every time; neighbours differ, the hue going round by the golden ratio."""
    red, green, blue = colorsys.hsv_to_rgb((class_id * GOLDEN_RATIO) % 1, 0.85, 0.95)
    return round(red * 255), round(green * 255), round(blue * 255)


def draw_boxes(image_bgr: NDArray[np.uint8], boxes: Sequence[DrawnBox]) -> NDArray[np.uint8]:
    """A copy of the image (H, W, 3) with the boxes on it, the first on top; lines and text grow with the image."""
    canvas = Image.fromarray(np.ascontiguousarray(image_bgr[..., ::-1]))
    pen = ImageDraw.Draw(canvas)
    width = max(1, round(max(canvas.size) / 400))
    font = _font(min(max(10, round(max(canvas.size) / 45)), 40))
    for box in reversed(boxes):
        pen.rectangle(box.box_xyxy, outline=box.colour, width=width)
    for box in reversed(boxes):
        _label(pen, font, box, canvas.size)
    return np.ascontiguousarray(np.asarray(canvas)[..., ::-1])


@cache
def _font(size: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    """DejaVu Sans (Latin, Greek, Cyrillic) from matplotlib's files where it is installed, else Pillow's own (ASCII)."""
    matplotlib = find_spec("matplotlib")
    if matplotlib is None or matplotlib.origin is None:
        return ImageFont.load_default(size)
    dejavu = Path(matplotlib.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
    return ImageFont.truetype(str(dejavu), size) if dejavu.is_file() else ImageFont.load_default(size)


def _label(
    pen: ImageDraw.ImageDraw, font: ImageFont.ImageFont | ImageFont.FreeTypeFont, box: DrawnBox, size: tuple[int, int]
) -> None:
    """The label above its box, or inside where the image ends, on a plate of the box's colour."""
    if not box.label:
        return
    left, top, right, bottom = pen.textbbox((0, 0), box.label, font=font)
    width, height = right - left + 4, bottom - top + 4
    x = min(max(box.box_xyxy[0], 0), max(size[0] - width, 0))
    y = box.box_xyxy[1] - height if box.box_xyxy[1] >= height else max(box.box_xyxy[1], 0)
    pen.rectangle((x, y, x + width, y + height), fill=box.colour)
    pen.text((x + 2 - left, y + 2 - top), box.label, fill=_readable_on(box.colour), font=font)


def _readable_on(colour: Colour) -> Colour:
    """Black or white, whichever stands out (relative luminance, ITU-R BT.709)."""
    luminance = 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]
    return (0, 0, 0) if luminance > 110 else (255, 255, 255)
