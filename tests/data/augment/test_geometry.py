"""Rounding to whole pixels: never more than half of one, no gap and no overlap at seams."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nightowl.data.augment.draw import View
from nightowl.data.augment.geometry import canvas_size, is_straight, matrix, piece, straight, tiles

SIZE = 64
FRACTION = st.floats(0, 1)


@st.composite
def straight_views(make: st.DrawFn) -> View:
    return View(
        images=(0, 1, 2, 3),
        centre=(make(st.integers(SIZE // 2, SIZE * 3 // 2)), make(st.integers(SIZE // 2, SIZE * 3 // 2))),
        degrees=0.0,
        scale=make(st.floats(0.1, 1.9)),
        shear_degrees=(0.0, 0.0),
        translate=(make(FRACTION), make(FRACTION)),
        perspective=(0.0, 0.0),
    )


SIZES = [(SIZE, 48), (36, SIZE), (SIZE, SIZE), (SIZE, 20)]


@given(straight_views())
def test_every_edge_of_a_piece_is_within_half_a_pixel_of_its_exact_place(view: View) -> None:
    to_training = straight(view, canvas_size(view, SIZES, SIZE), SIZE)
    for tile in tiles(view, SIZES, SIZE):
        done = piece(tile, to_training, SIZE)
        if done is None:
            continue
        for span, offset, shift in (
            (done.x, tile.offset[0], to_training.shift_x),
            (done.y, tile.offset[1], to_training.shift_y),
        ):
            for source, target in ((span.first, span.low), (span.last, span.high)):
                assert abs(to_training.scale * (source + offset) + shift - target) <= 0.5 + 1e-9
            assert span.low > -2 and span.high < SIZE + 2


@given(straight_views())
def test_a_piece_is_missing_only_where_less_than_a_pixel_is_seen(view: View) -> None:
    to_training = straight(view, canvas_size(view, SIZES, SIZE), SIZE)
    for tile in tiles(view, SIZES, SIZE):
        if piece(tile, to_training, SIZE) is None:
            low, high = np.array(tile.shown).reshape(2, 2) + tile.offset
            shift = np.array((to_training.shift_x, to_training.shift_y))
            seen = np.clip(to_training.scale * high + shift, 0, SIZE) - np.clip(to_training.scale * low + shift, 0, SIZE)
            assert seen.min() <= 1 + 1e-9


@given(straight_views())
def test_neighbours_meet_at_the_seam(view: View) -> None:
    to_training = straight(view, canvas_size(view, SIZES, SIZE), SIZE)
    top_left, top_right, bottom_left, _ = (piece(tile, to_training, SIZE) for tile in tiles(view, SIZES, SIZE))
    if top_left and top_right and top_left.x.high < SIZE:
        assert top_left.x.high == top_right.x.low
    if top_left and bottom_left and top_left.y.high < SIZE:
        assert top_left.y.high == bottom_left.y.low


@given(straight_views())
def test_the_short_form_of_a_straight_transform_is_the_matrix(view: View) -> None:
    canvas = canvas_size(view, SIZES, SIZE)
    scale, x, y = straight(view, canvas, SIZE)
    assert is_straight(view)
    assert np.allclose(matrix(view, canvas, SIZE), [[scale, 0, x], [0, scale, y], [0, 0, 1]])
