import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightowl.data.drift import Drift, chance_limit, judge_drift, psi
from nightowl.data.figures import SIZE_EDGES, DatasetFigures, figures_of
from nightowl.data.manifest import Box, Image, Manifest

COUNTS = st.lists(st.integers(0, 500), min_size=2, max_size=8).filter(lambda c: sum(c) > 0)


def figures(*boxes: int, version: str = "v", sizes: tuple[int, ...] | None = None) -> DatasetFigures:
    spread = sizes or (sum(boxes), *[0] * len(SIZE_EDGES))
    names = tuple("abcdefgh"[: len(boxes)])
    return DatasetFigures(
        dataset_version=version, classes=names, class_boxes=boxes, size_boxes=spread, num_images=9, num_background=0
    )


def drift(before: DatasetFigures | None, now: DatasetFigures) -> tuple[Drift, ...]:
    return judge_drift(before, now, 0.25, 100)


@given(COUNTS)
def test_equal_histograms_have_an_index_of_zero(counts: list[int]) -> None:
    assert psi(counts, counts) == 0


@given(COUNTS, st.randoms())
def test_the_index_is_symmetric_and_never_negative(counts: list[int], random: "st.random.Random") -> None:
    other = random.sample(counts, len(counts))
    assert psi(counts, other) == pytest.approx(psi(other, counts)) and psi(counts, other) >= 0


def test_the_index_is_that_of_the_formula() -> None:
    p, q = np.array([900.5, 100.5]) / 1001, np.array([500.5, 500.5]) / 1001
    assert psi([900, 100], [500, 500]) == pytest.approx(float(((q - p) * np.log(q / p)).sum()))


def test_a_shift_of_classes_is_a_drift_with_the_class_that_moved_most() -> None:
    classes, sizes = drift(figures(900, 100), figures(500, 500, version="w"))
    assert classes.drifted and classes.sentence.endswith("b went from 10.0% to 50.0% of the boxes")
    assert not sizes.drifted and sizes.psi == 0


def test_a_shift_of_box_sizes_is_a_drift() -> None:
    before, now = (0, 0, 0, 800, 200, 0, 0, 0), (0, 0, 0, 100, 900, 0, 0, 0)
    classes, sizes = drift(figures(1000, sizes=before), figures(1000, sizes=now, version="w"))
    assert (classes.drifted, sizes.drifted) == (False, True)
    assert "sides of 6.2% to 12.5% went from 20.0% to 90.0%" in sizes.sentence


def test_a_new_class_counts_from_nothing() -> None:
    (classes, _) = drift(figures(500), figures(500, 500, version="w"))
    assert classes.drifted and "b went from 0.0% to 50.0%" in classes.sentence


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (None, figures(500), "there is no champion, so no earlier data to compare with"),
        (figures(500), figures(500), "the data is the champion's own"),
        (figures(99), figures(500, version="w"), "99 boxes then and 500 now: too few to judge by (at least 100 each)"),
    ],
)
def test_what_cannot_be_judged_has_no_figure_and_says_why(
    before: DatasetFigures | None, now: DatasetFigures, said: str
) -> None:
    assert [(d.psi, d.drifted, d.sentence) for d in drift(before, now)] == [(None, False, said)] * 2


def test_chance_alone_is_rarely_a_drift() -> None:
    random, shares = np.random.default_rng(0), [0.6, 0.3, 0.05, 0.05]
    draws = random.multinomial(100, shares, (2000, 2)).tolist()
    above = sum(psi(one, two) > max(0.25, chance_limit(one, two)) for one, two in draws)
    assert above <= 10, "about 1 in 1,000; without the guard of chance it would be more"


def test_the_limit_of_chance_is_the_quantile_of_chi_square() -> None:
    assert chance_limit([100, 100, 100], [100, 100, 100]) == pytest.approx(13.816 * 2 / 300, rel=0.03), (
        "13.816 in the tables; the approximation errs upwards"
    )


def test_figures_count_classes_sizes_and_background_without_crowds() -> None:
    boxes = (Box(0, 0, 0, 50, 50), Box(1, 0, 0, 5, 5), Box(0, 0, 0, 100, 100, ignore=True), Box(0, 5, 5, 5, 9))
    images = (Image("a", "", 1, 100, 100, "train", boxes), Image("b", "", 1, 100, 100, "val", ()))
    found = figures_of(Manifest(("x", "y"), images, "rule"))
    assert (found.class_boxes, found.num_images, found.num_background) == ((2, 1), 2, 1)
    assert found.size_boxes == (1, 0, 0, 1, 0, 0, 1, 0), (
        "a box without area is in the first bin; half a side is not over a half"
    )
