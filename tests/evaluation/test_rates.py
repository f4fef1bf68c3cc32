"""Bounds of rates against their textbook values, and what few data say."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from nightowl.evaluation.bootstrap import draw_weights
from nightowl.evaluation.rates import (
    Resampled,
    count_high,
    count_low,
    count_p_above,
    count_per,
    share_high,
    share_low,
    share_of,
    share_p_above,
    trials_without_event,
)


def resamples(groups: NDArray[np.int64]) -> Resampled:
    return Resampled(draw_weights(groups, 400, 0).astype(np.float64), groups)


WEIGHTS = resamples(np.arange(100))


@pytest.mark.parametrize(
    ("events", "trials", "confidence", "low", "high", "source"),
    [
        (0, 10, 0.975, 0.0, 0.3085, "Clopper and Pearson, 95 % two-sided"),
        (1, 10, 0.975, 0.0025, 0.4450, "the same"),
        (5, 10, 0.975, 0.1871, 0.8129, "the same, symmetrical"),
        (10, 10, 0.975, 0.6915, 1.0, "the mirror of none in ten"),
        (0, 300, 0.95, 0.0, 0.00994, "the rule of three: 3 / 300"),
        (12_000, 20_000, 0.95, 0.59428, 0.60571, "many: the normal approximation, 0.6 -+ 1.645 x 0.003464"),
    ],
)
def test_the_exact_bounds_of_a_share(events: int, trials: int, confidence: float, low: float, high: float, source: str) -> None:
    assert share_low(events, trials, confidence) == pytest.approx(low, abs=1e-4), source
    assert share_high(events, trials, confidence) == pytest.approx(high, abs=1e-4), source


@pytest.mark.parametrize(
    ("events", "low", "high"), [(0, 0.0, 3.689), (1, 0.0253, 5.572), (10, 4.795, 18.390), (100, 81.36, 121.63)]
)
def test_the_exact_bounds_of_a_count(events: int, low: float, high: float) -> None:
    """Garwood's 95 % two-sided limits, from his table."""
    assert count_low(events, 0.975) == pytest.approx(low, abs=1e-2)
    assert count_high(events, 0.975) == pytest.approx(high, abs=1e-2)


@pytest.mark.parametrize(
    ("limit", "trials", "why"),
    [
        (0.01, 299, "the rule of three, exactly"),
        (0.0001, 29_956, "one false alarm in ten thousand"),
        (1.0, 1, "any trial shows it"),
        (0.0, None, "no number shows that it never happens"),
    ],
)
def test_how_many_trials_without_an_event_show_a_limit(limit: float, trials: int | None, why: str) -> None:
    assert trials_without_event(limit, 0.95) == trials, why
    if trials and trials > 1:
        assert share_high(0, trials, 0.95) <= limit < share_high(0, trials - 1, 0.95)


def test_no_trial_at_all_is_unknown_and_not_zero() -> None:
    none = np.zeros(100, np.int64)
    for rate in (share_of(none, none, WEIGHTS, 0.95), count_per(none, none, WEIGHTS, 0.95)):
        assert (rate.events, rate.trials, rate.value, rate.interval) == (0, 0, None, None)


def test_no_event_in_few_trials_leaves_a_high_bound() -> None:
    trials = np.ones(100, np.int64)
    rate = share_of(np.zeros(100, np.int64), trials, WEIGHTS, 0.95)
    assert rate.value == 0 and rate.interval is not None
    assert (rate.interval.low, rate.interval.high) == pytest.approx((0, 1 - 0.05 ** (1 / 100)))


def test_events_that_come_together_widen_the_bounds() -> None:
    """Sixty misses in ten images say less than sixty spread over sixty."""
    objects = np.full(100, 6, np.int64)
    together, apart = np.zeros(100, np.int64), np.zeros(100, np.int64)
    together[:10], apart[:60] = 6, 1
    wide, narrow = (share_of(missed, objects, WEIGHTS, 0.95).interval for missed in (together, apart))
    assert wide is not None and narrow is not None
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_few_lots_say_less_than_their_images_seem_to() -> None:
    """Three lots of which one misses half: what other lots do is anybody's guess."""
    objects, missed, lots = np.ones(60, np.int64), np.zeros(60, np.int64), np.arange(60) // 20
    missed[:10] = 1
    few = share_of(missed, objects, resamples(lots), 0.95, 0.05)
    many = share_of(missed, objects, resamples(np.arange(60)), 0.95, 0.05)
    assert few.interval is not None and many.interval is not None
    assert few.interval.high > 0.6 > 0.3 > many.interval.high
    assert few.p_above is not None and many.p_above is not None
    assert few.p_above > 0.1 > 0.01 > many.p_above


def test_bounds_hold_as_often_as_they_say() -> None:
    """Of 2,000 lines with a true escape rate of 5 %, the upper bound from 100 images lies below it in 5 % at most."""
    random = np.random.default_rng(0)
    events = random.binomial(100, 0.05, 2000)
    kinds, number = np.unique(events, return_counts=True)
    below = [share_high(int(kind), 100, 0.95) < 0.05 for kind in kinds]
    assert number[below].sum() / 2000 <= 0.05


def test_a_count_has_no_upper_limit_of_one() -> None:
    rate = count_per(np.full(100, 3, np.int64), np.ones(100, np.int64), WEIGHTS, 0.95)
    assert rate.value == 3 and rate.interval is not None
    assert rate.interval.low < 3 < rate.interval.high < math.inf


def test_a_share_ends_at_one_however_few_images_were_drawn_again() -> None:
    trials = np.array([1, 1, 1, 1, 1])
    events = np.array([1, 1, 1, 1, 0])
    share = share_of(events, trials, resamples(np.arange(5)), 0.99)
    assert share.interval is not None
    assert share.interval.high <= 1.0


@pytest.mark.parametrize(
    ("events", "trials", "limit", "chance", "why"),
    [
        (2, 10, 0.05, 0.08614, "1 - 0.95^10 - 10 x 0.05 x 0.95^9"),
        (0, 10, 0.05, 1.0, "nothing happened"),
        (1, 10, 0.0, 0.0, "it must never happen"),
        (10, 10, 1.0, 1.0, "it may always happen"),
    ],
)
def test_the_chance_of_so_many_events_at_the_limit(events: int, trials: int, limit: float, chance: float, why: str) -> None:
    assert share_p_above(events, trials, limit) == pytest.approx(chance, abs=1e-5), why


def test_the_chance_agrees_with_the_bounds() -> None:
    """A limit at the lower bound is passed by chance with just what the bound's confidence leaves."""
    assert share_p_above(7, 90, share_low(7, 90, 0.95)) == pytest.approx(0.05)
    assert count_p_above(7, count_low(7, 0.95)) == pytest.approx(0.05)
    assert count_p_above(0, 0.0) == 1 and count_p_above(1, 0.0) == 0


def test_events_that_come_together_are_a_weaker_proof() -> None:
    objects, together, apart = np.full(100, 6, np.int64), np.zeros(100, np.int64), np.zeros(100, np.int64)
    together[:10], apart[:60] = 6, 1
    weak, strong = (share_of(missed, objects, WEIGHTS, 0.95, 0.07).p_above for missed in (together, apart))
    assert weak is not None and strong is not None
    assert strong < 0.01 < weak
    assert share_of(apart, objects, WEIGHTS, 0.95).p_above is None
    assert count_per(apart, objects, WEIGHTS, 0.95, 0.07).p_above == pytest.approx(strong, abs=0.01)
