"""Tiles cover the image, see the boxes that they should, and stay the same when data grows."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightowl.data.manifest import SPLITS, Box, Image, Manifest, Window
from nightowl.data.tiling import boxes_in, in_views, tiles_of, windows_of
from nightowl.params import TilingParams

TILING = TilingParams(size_px=100, overlap=0.2)


def image(*boxes: Box, width: int = 300, height: int = 100, sha256: str = "a" * 64) -> Image:
    return Image("line.png", sha256, 1, width, height, "train", boxes)


@given(st.integers(1, 900), st.integers(1, 900), st.integers(32, 400), st.floats(0, 0.75))
def test_tiles_cover_every_pixel_lie_inside_and_overlap_as_asked(width: int, height: int, size: int, overlap: float) -> None:
    windows = windows_of(width, height, TilingParams(size_px=size, overlap=overlap))
    covered = np.zeros((height, width), bool)
    for x, y, w, h in windows:
        assert 0 <= x <= x + w <= width and 0 <= y <= y + h <= height
        assert (w, h) == (min(size, width), min(size, height))
        covered[y : y + h, x : x + w] = True
    assert covered.all()
    across = sorted({window.x for window in windows})
    assert all(second - first <= round(size * (1 - overlap)) for first, second in itertools.pairwise(across))


@pytest.mark.parametrize(
    ("width", "starts", "why"),
    [
        (99, [0], "smaller than a tile: one, smaller too"),
        (100, [0], "just a tile"),
        (101, [0, 1], "the last ends with the image"),
        (180, [0, 80], "a whole number of steps"),
        (200, [0, 80, 100], "the last is moved back"),
    ],
)
def test_tiles_begin_where_the_overlap_says(width: int, starts: list[int], why: str) -> None:
    assert [window.x for window in windows_of(width, 50, TILING)] == starts, why


def test_without_tiling_the_whole_image_is_the_one_view() -> None:
    assert windows_of(4096, 2160, None) == [Window(0, 0, 4096, 2160)]


@pytest.mark.parametrize(
    ("box", "seen", "why"),
    [
        (Box(1, 110, 10, 130, 30), Box(1, 10, 10, 30, 30), "whole: only moved"),
        (Box(1, 90, 10, 110, 30), Box(1, 0, 10, 10, 30), "just half of it shows"),
        (Box(1, 89, 10, 109, 30), None, "less than half"),
        (Box(1, 89, 10, 109, 30, ignore=True), Box(1, 0, 10, 9, 30, ignore=True), "a crowd is kept however little shows"),
        (Box(1, 300, 10, 320, 30), None, "elsewhere"),
        (Box(1, 80, 10, 100, 30), None, "touches the edge from outside"),
        (Box(1, 50, 0, 350, 100), None, "larger than the tile: a third shows"),
    ],
)
def test_a_box_is_learnt_where_enough_of_it_shows(box: Box, seen: Box | None, why: str) -> None:
    assert boxes_in([box], Window(100, 0, 100, 100), min_visible=0.5) == (() if seen is None else (seen,)), why


@given(st.tuples(*[st.floats(0, 299)] * 2), st.floats(1, 19), st.floats(1, 19))
def test_an_object_no_larger_than_the_overlap_is_whole_in_some_tile(corner: tuple[float, float], w: float, h: float) -> None:
    x, y = min(corner[0], 300 - w), min(corner[1], 300 - h)
    box = Box(0, x, y, x + w, y + h)
    assert any(boxes_in([box], window, 1 - 1e-9) for window in windows_of(300, 300, TILING))


def test_a_tile_that_shows_too_little_of_an_object_is_neither_learnt_nor_background() -> None:
    cut = Box(0, 85, 0, 185, 100)  # whole in none of the tiles at 0, 80, 160, 200; by 95 % in the second alone
    every = TILING.model_copy(update={"empty_fraction": 1.0})
    assert [tile.window.x for tile in tiles_of([image(cut)], every) if tile.window] == [80, 200]


def test_which_empty_tiles_are_seen_is_a_function_of_the_image_alone() -> None:
    images = [image(width=2000, height=2000, sha256=f"{number:064}") for number in range(4)]
    alone = [[tile.window for tile in tiles_of([one], TILING)] for one in images]
    together = list(tiles_of(images, TILING))
    assert [[tile.window for tile in together if tile.sha256 == one.sha256] for one in images] == alone
    num_all = 4 * len(windows_of(2000, 2000, TILING))
    assert 0.05 < len(together) / num_all < 0.15, "empty_fraction is a tenth"


def test_training_looks_at_tiles_of_train_and_val_and_test_is_left_whole() -> None:
    box = Box(0, 10, 10, 30, 30)
    images = [replace(image(box), path=f"{split}.png", split=split) for split in SPLITS]
    seen = in_views(Manifest(("a",), tuple(images), "given"), TILING.model_copy(update={"empty_fraction": 0.0}))
    assert [(view.window, view.boxes) for view in seen.of("train")] == [(Window(0, 0, 100, 100), (box,))]
    assert [view.window and view.window.x for view in seen.of("val")] == [0, 80, 160, 200], (
        "all of them: what is not found counts"
    )
    assert seen.of("test") == (images[2],)
    assert {(view.width, view.height) for view in seen.of("val")} == {(100, 100)}


def test_without_tiling_training_looks_at_the_data_set() -> None:
    dataset = Manifest(("a",), (image(),), "given")
    assert in_views(dataset, None) is dataset
