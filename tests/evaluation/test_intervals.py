"""Decisions with a stated confidence, and what too little data does to them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightowl.evaluation.intervals import (
    Interval,
    holm,
    images_that_suffice,
    interval,
    non_inferior,
    p_value,
    superior,
)

MANY = 1_000_000  # images


def resampled(mean: float, spread: float, number: int = 1001) -> np.ndarray:
    """Differences spread evenly about their mean, from mean - spread to mean + spread."""
    return np.linspace(mean - spread, mean + spread, number)


def test_the_bounds_are_quantiles_of_the_resamples() -> None:
    bounds = interval(resampled(0.0, 1.0), MANY, 0.95)
    assert (bounds.low, bounds.high) == (pytest.approx(-0.9), pytest.approx(0.9))


def test_beyond_what_the_resamples_resolve_the_normal_curve_gives_the_bound() -> None:
    normal = np.random.default_rng(0).normal(0, 1, 1000)
    assert interval(normal, MANY, 0.9999).low == pytest.approx(-3.72, abs=0.2)


@pytest.mark.parametrize(("num_images", "z"), [(5, 2.1318 * 1.1180), (20, 1.7291 * 1.0260), (1000, 1.6464 * 1.0005)])
def test_resamples_of_few_images_give_wider_bounds_by_students_quantile(num_images: int, z: float) -> None:
    normal = np.random.default_rng(0).normal(0, 1, 200_000)
    assert interval(normal, num_images, 0.95).high == pytest.approx(z, abs=0.03)


@pytest.mark.parametrize(("num_images", "p"), [(5, 0.05), (20, 0.05), (20, 0.005), (1000, 0.02)])
def test_a_p_value_is_the_error_of_the_bound_that_reaches_the_limit(num_images: int, p: float) -> None:
    normal = np.random.default_rng(0).normal(-1, 1, 200_000)
    limit = interval(normal, num_images, 1 - p).high
    assert p_value(normal, num_images, limit) == pytest.approx(max(p, 0.5**num_images), rel=0.2)


def test_four_images_or_lots_show_nothing_however_much_they_agree() -> None:
    agreeing = np.full(1000, 0.3)
    assert non_inferior(agreeing, 4, 0.01, 0.95) == superior(agreeing, 4, 0.95) == "unknown"
    assert non_inferior(agreeing, 5, 0.01, 0.95) == superior(agreeing, 5, 0.95) == "yes"


def test_one_image_has_no_bound() -> None:
    with pytest.raises(ValueError, match="do not vary"):
        interval(np.zeros(10), 1, 0.95)


@pytest.mark.parametrize("confidence", [0.4, 1.0])
def test_a_confidence_that_means_nothing_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence must be"):
        interval(resampled(0, 1), MANY, confidence)


def test_no_resamples_give_no_bound() -> None:
    with pytest.raises(ValueError, match="no resampled differences"):
        interval(np.zeros(0), MANY, 0.95)


@pytest.mark.parametrize(
    ("mean", "spread", "not_inferior", "better", "reason"),
    [
        (0.05, 0.01, "yes", "yes", "clearly better"),
        (0.0, 0.005, "yes", "unknown", "about as good, within the margin of 0.01"),
        (-0.005, 0.001, "yes", "no", "a little worse, surely, and within the margin"),
        (0.0, 0.05, "unknown", "unknown", "too wide to tell anything"),
        (-0.05, 0.01, "no", "no", "clearly worse"),
        (0.0, 0.0, "yes", "no", "exactly as good is not better"),
        (-0.01, 0.0, "yes", "no", "a drop of exactly the margin is allowed"),
    ],
)
def test_a_decision_is_yes_no_or_unknown(mean: float, spread: float, not_inferior: str, better: str, reason: str) -> None:
    differences = resampled(mean, spread)
    assert non_inferior(differences, MANY, 0.01, 0.95) == not_inferior, reason
    assert superior(differences, MANY, 0.95) == better, reason


@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=50), st.floats(0, 0.5), st.floats(0, 0.5), st.sampled_from([0.8, 0.9, 0.95])
)
def test_a_wider_margin_never_turns_yes_into_something_else(
    values: list[float], margin: float, more: float, confidence: float
) -> None:
    differences = np.array(values)
    if non_inferior(differences, MANY, margin, confidence) == "yes":
        assert non_inferior(differences, MANY, margin + more, confidence) == "yes"
    if superior(differences, MANY, confidence) == "yes":
        assert non_inferior(differences, MANY, 0, confidence) == "yes"


@pytest.mark.parametrize(
    ("difference", "limit", "needed", "reason"),
    [
        (0.0, -0.01, 1600, "an interval four times too wide needs sixteen times the images"),
        (-0.02, -0.01, 1600, "the same to show that it is worse"),
        (0.0, -0.08, 100, "what decides already needs no more"),
        (-0.01, -0.01, None, "a difference that is the limit stays undecided for ever"),
    ],
)
def test_the_images_that_would_suffice_grow_with_the_square(
    difference: float, limit: float, needed: int | None, reason: str
) -> None:
    bounds = Interval(low=difference - 0.04, high=difference + 0.04, confidence=0.95)
    answer = images_that_suffice(100, difference, bounds, limit)
    assert answer == needed or (answer is not None and needed is not None and abs(answer - needed) <= 1), reason


@pytest.mark.parametrize(
    ("mean", "num_images", "expected", "reason"),
    [
        (0.0, 50, 0.5, "half of the resamples lie on either side"),
        (1.0, 50, 1.0, "all lie above the limit"),
        (-2.0, 50, 0.0, "all lie far below"),
        (-2.0, 3, 0.125, "three images show nothing, however clear"),
    ],
)
def test_a_p_value_is_the_share_of_resamples_on_the_harmless_side(
    mean: float, num_images: int, expected: float, reason: str
) -> None:
    assert p_value(resampled(mean, 1.0), num_images, 0.0) == pytest.approx(expected, abs=2e-3), reason


def test_a_p_value_of_many_resamples_is_finer_than_their_number() -> None:
    normal = np.random.default_rng(0).normal(-4.5, 1, 1000)
    assert 0 < p_value(normal, 500, 0.0) < 1e-4


def test_nothing_resampled_cannot_be_tested() -> None:
    with pytest.raises(ValueError, match="nothing can be tested"):
        p_value(np.zeros(0), 50, 0.0)


@pytest.mark.parametrize(
    ("p_values", "shown", "reason"),
    [
        ((), (), "nothing was compared"),
        ((0.04,), (True,), "alone it is below 5 %"),
        ((0.04, 0.9), (False, False), "one of two must be below 2.5 %"),
        ((0.03, 0.02), (True, True), "the smallest passes at 2.5 %, so that the next needs 5 % only"),
        ((0.9, 0.001, 0.03), (False, True, False), "stops at the first that is not shown"),
    ],
)
def test_holm_asks_more_of_each_the_more_are_compared(
    p_values: tuple[float, ...], shown: tuple[bool, ...], reason: str
) -> None:
    assert holm(p_values, 0.05) == shown, reason


def test_holm_keeps_its_level_over_many_classes_without_any_drop() -> None:
    random = np.random.default_rng(0)
    false = sum(any(holm(random.uniform(size=20).tolist(), 0.05)) for _ in range(2000))
    assert false / 2000 < 0.065
