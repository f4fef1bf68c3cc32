"""Validation in tiles: an object on the edge of two counts once, in pixels of its image, on any number of ranks."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nightowl.data.manifest import Box, Image, Window
from nightowl.data.tiling import all_tiles
from nightowl.evaluation.preprocess import Letterbox, padded, plan_letterbox
from nightowl.evaluation.truth import truth_of
from nightowl.params import TilingParams
from nightowl.training.group import Alone
from nightowl.training.progress import Figures
from nightowl.training.validation import Validator, View, views_of

SIZE = 64
TILING = TilingParams(size_px=SIZE, overlap=0.5)
OBJECTS = {"a.png": [(10, 10, 30, 26), (90, 40, 110, 60)], "b.png": [(60, 4, 76, 20)], "c.png": []}


class BrightSpot(torch.nn.Module):
    """Finds one box, the bounds of what is bright; surer the more of the view it fills."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        output = torch.zeros(len(batch), 5, 1)
        for view, row in zip(batch[:, 0] > 0.9, output[:, :, 0], strict=True):
            ys, xs = torch.nonzero(view, as_tuple=True)
            if len(xs):
                x1, x2, y1, y2 = int(xs.min()), int(xs.max()) + 1, int(ys.min()), int(ys.max()) + 1
                row[:] = torch.tensor([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1, 0.5 + float(view.float().mean()) / 2])
        return output


class Tiles:
    """The views of images 160 wide and 64 high, black but for their objects."""

    def __init__(self, tiles: list[Image]) -> None:
        self.tiles = tiles

    def __len__(self) -> int:
        return len(self.tiles)

    def __getitem__(self, index: int) -> tuple[NDArray[np.uint8], Letterbox]:
        tile = self.tiles[index]
        pixels = np.zeros((64, 160, 3), np.uint8)
        for x1, y1, x2, y2 in OBJECTS[tile.path]:
            pixels[y1:y2, x1:x2] = 255
        assert tile.window is not None
        x, y, width, height = tile.window
        plan, _ = plan_letterbox(width, height, SIZE)
        square = padded(pixels[y : y + height, x : x + width], plan, SIZE)
        return np.ascontiguousarray(square.transpose(2, 0, 1)), plan


def image(path: str) -> Image:
    return Image(path, path * 10, 1, 160, 64, "val", tuple(Box(0, *box) for box in OBJECTS[path]))


@pytest.mark.parametrize("batch", [1, 3, 16])
def test_every_object_is_found_once_where_it_is(batch: int) -> None:
    images = [image(path) for path in OBJECTS]
    tiles = list(all_tiles(images, TILING))
    truth = truth_of(("thing",), tuple(images))
    validator = Validator(Tiles(tiles), views_of(images, tiles), truth, SIZE, "raw", "cpu", Alone(), TILING)
    figures = validator.measure(BrightSpot(), batch, lambda: False, lambda first: None)
    assert isinstance(figures, Figures)
    assert (figures.map50_95, figures.precision, figures.recall) == (pytest.approx(1), pytest.approx(1), pytest.approx(1))


def test_views_know_their_image_and_place() -> None:
    images = [image("a.png"), image("b.png")]
    assert views_of(images, images) == [View(0, Window(0, 0, 160, 64)), View(1, Window(0, 0, 160, 64))]
    tiles = list(all_tiles(images, TILING))
    assert [(view.image, view.window.x) for view in views_of(images, tiles)] == [
        (i, x) for i in (0, 1) for x in (0, 32, 64, 96)
    ]
