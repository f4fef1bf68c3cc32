import re

import pytest

from nightowl.report.chart import LEFT, MAX_STRIPS, RIGHT, TOP, line_chart, nice_ticks
from nightowl.report.content import Series


def series(*points: tuple[float, float | None], name: str = "loss") -> Series:
    return Series(name=name, points=points)


@pytest.mark.parametrize(
    ("low", "high", "expected", "reason"),
    [
        (0, 1, [0, 0.25, 0.5, 0.75, 1], "the unit range ends on its ends"),
        (1.07, 3.18, [1, 2, 3, 4], "encloses what it is given"),
        (0, 0.0093, [0, 0.0025, 0.005, 0.0075, 0.01], "small values, as learning rates are"),
        (-2, 2, [-2, -1, 0, 1, 2], "both sides of zero"),
    ],
)
def test_ticks_are_round_and_enclose_the_range(low: float, high: float, expected: list[float], reason: str) -> None:
    assert nice_ticks(low, high) == pytest.approx(expected), reason


def test_ticks_of_epochs_are_whole() -> None:
    assert nice_ticks(1, 3, whole=True) == [1, 2, 3]


def test_the_lines_fill_the_frame() -> None:
    chart = line_chart("", [series((0, 0), (1, 1))], x_label="x", x_range=(0, 1), y_range=(0, 1), size=(340, 200))
    assert chart.lines[0].path == f"M{LEFT:.1f},{200 - chart.bottom:.1f}L{340 - RIGHT:.1f},{TOP:.1f}"


def test_a_missing_figure_is_a_gap_and_never_zero() -> None:
    chart = line_chart("", [series((1, 0.5), (2, 0.6), (3, None), (4, 0.7), (5, 0.8))], x_label="epoch")
    assert chart.lines[0].path.count("M") == 2
    assert chart.lines[0].path.count(",") == 4


def test_a_single_epoch_is_a_dot() -> None:
    chart = line_chart("", [series((1, 0.5))], x_label="epoch", whole_x=True)
    assert len(chart.lines[0].dots) == 1
    assert [tick.text for tick in chart.x_ticks] == ["0", "1", "2"]


@pytest.mark.parametrize("points", [[], [(1.0, None)], [(1.0, 0.0), (2.0, 0.0)], [(1.0, 1e9), (2.0, 1e12)], [(1.0, -3.0)]])
def test_any_figures_give_finite_geometry(points: list[tuple[float, float | None]]) -> None:
    chart = line_chart("", [series(*points)], x_label="epoch")
    assert not re.search("nan|inf", repr(chart))
    assert all(len(tick.text) <= 8 for tick in chart.y_ticks)


def test_pointing_at_an_epoch_says_all_its_figures() -> None:
    shown = [series((1, 0.5), (2, None), name="train"), series((1, 0.7), (2, 0.65), name="val")]
    chart = line_chart("", shown, x_label="epoch")
    assert [strip.title for strip in chart.strips] == ["epoch 1\ntrain 0.5\nval 0.7", "epoch 2\ntrain none\nval 0.65"]


def test_strips_lie_side_by_side_and_their_number_is_bounded() -> None:
    chart = line_chart("", [series(*((float(x), 1.0 / (x + 1)) for x in range(1000)))], x_label="epoch")
    assert len(chart.strips) <= MAX_STRIPS
    for one, following in zip(chart.strips, chart.strips[1:], strict=False):
        assert one.left + one.width == pytest.approx(following.left)


def test_the_mark_is_drawn_only_where_it_lies_in_the_frame() -> None:
    inside = line_chart("", [series((1, 1), (9, 2))], x_label="epoch", mark=(5, "best: 5"))
    assert inside.mark is not None and inside.mark.at == pytest.approx((LEFT + 340 - RIGHT) / 2)
    assert line_chart("", [series((1, 1), (9, 2))], x_label="epoch", mark=(12, "best: 12")).mark is None
