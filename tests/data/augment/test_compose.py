"""Pixels at the places where tiles meet or end."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from nightowl.data.augment.compose import GREY
from nightowl.data.augment.draw import Draw, View
from nightowl.data.augment.sample import Augmenter
from nightowl.data.labels import Labels
from tests.data.training_sets import InMemory

SIZE = 96
STRAIGHT = View((0, 1, 2, 3), (SIZE, SIZE), 0.0, 1.0, (0.0, 0.0), (0.5, 0.5), (0.0, 0.0))
VIEWS = [
    ("straight", STRAIGHT),
    ("enlarged, by fractions of a pixel", replace(STRAIGHT, scale=1.37, translate=(0.453, 0.529))),
    ("shrunk, by fractions of a pixel", replace(STRAIGHT, scale=0.71, translate=(0.453, 0.529))),
    ("rotated", replace(STRAIGHT, degrees=17.0)),
    ("rotated by a quarter", replace(STRAIGHT, degrees=90.0)),
    ("sheared", replace(STRAIGHT, shear_degrees=(4.0, -3.0))),
    ("in perspective", replace(STRAIGHT, degrees=-8.0, perspective=(0.0004, -0.0004))),
]


def image_of(view: View, images: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    labels = Labels(np.empty((0, 4)), np.empty(0, np.int64), np.zeros(len(images) + 1, np.int64))
    target = np.empty((3, SIZE, SIZE), np.uint8)
    Augmenter(InMemory(images), labels, SIZE).augment(Draw(view, None, 1.0, (0.0, 0.0, 0.0), False, False), target)
    return target


def plain(level: int) -> NDArray[np.uint8]:
    return np.full((SIZE, SIZE, 3), level, np.uint8)


@pytest.mark.parametrize("view", [row[1] for row in VIEWS], ids=[row[0] for row in VIEWS])
def test_no_grey_shows_between_tiles(view: View) -> None:
    assert (image_of(view, [plain(255)] * 4) == 255).all()


@pytest.mark.parametrize("view", [row[1] for row in VIEWS], ids=[row[0] for row in VIEWS])
def test_every_tile_is_seen_and_mixed_with_its_neighbours_at_most_at_the_seam(view: View) -> None:
    levels = (10, 60, 180, 250)
    found = image_of(view, [plain(level) for level in levels])
    pure = np.isin(found, levels)
    assert set(np.unique(found[pure])) == set(levels)
    assert (~pure).mean() < (5 / SIZE if view.degrees or view.shear_degrees != (0, 0) else 1e-9)


def test_beyond_the_canvas_it_is_grey() -> None:
    one = View((0,), None, 0.0, 0.5, (0.0, 0.0), (0.5, 0.5), (0.0, 0.0))
    found = image_of(one, [plain(255)])
    inside = found[:, SIZE // 4 : -SIZE // 4, SIZE // 4 : -SIZE // 4]
    assert (inside == 255).all() and (found == 255).sum() == inside.size
    assert set(np.unique(found)) == {GREY, 255}


def test_channels_come_out_as_rgb_planes() -> None:
    blue = np.zeros((SIZE, SIZE, 3), np.uint8)
    blue[:, :, 0] = 200
    assert image_of(replace(STRAIGHT, images=(0,), centre=None), [blue])[:, 40, 40].tolist() == [0, 0, 200]
