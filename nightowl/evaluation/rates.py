"""Rates with their uncertainty, and how many images it takes to show one: what a line manager asks of an inspection.

A bound is one-sided with the stated confidence. It is the exact one for independent trials (Clopper and Pearson 1934 for
shares, Garwood 1936 for counts), widened where resampling whole images, or groups of them, says more: objects of an image are
not independent. A rate of which there was not a single trial is unknown, never zero. Beyond a limit, the same two say how
likely so many events would be by chance.

I images, R resamples of them.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.intervals import Interval, interval, p_value
from nightowl.records import Record

_STEPS = 60  # halvings of the interval: beyond double precision


class Rate(Record):
    """`events` in `trials`; `value` and `interval` are None where there were no trials.

    `p_above`: how likely so many events would be, were the truth at the rate's limit; None where it has none of its own.
    """

    events: int
    trials: int
    value: float | None
    interval: Interval | None
    p_above: float | None = None


class Resampled(NamedTuple):
    """Resamples of the images as weights (R, I), and the number of the group (I,) that each image was drawn with."""

    weights: NDArray[np.float64]
    groups: NDArray[np.int64]


def share_of(
    events: NDArray[np.integer],
    trials: NDArray[np.integer],
    resampled: Resampled,
    confidence: float,
    limit: float | None = None,
) -> Rate:
    """The share of trials with an event, from the counts (I,) of each image."""
    k, n = int(events.sum()), int(trials.sum())
    exact = (share_low(k, n, confidence), share_high(k, n, confidence)) if n else (0.0, 1.0)
    chance = None if limit is None else share_p_above(k, n, limit)
    rate = _rate(k, n, exact, _drawn(events, trials, resampled), _num_groups(trials, resampled), confidence, limit, chance)
    if rate.interval is None:
        return rate
    return rate.model_copy(update={"interval": rate.interval.model_copy(update={"high": min(rate.interval.high, 1.0)})})


def count_per(
    events: NDArray[np.integer],
    trials: NDArray[np.integer],
    resampled: Resampled,
    confidence: float,
    limit: float | None = None,
) -> Rate:
    """Events a trial, of which there may be more than one, from the counts (I,) of each image."""
    k, n = int(events.sum()), int(trials.sum())
    exact = (count_low(k, confidence) / n, count_high(k, confidence) / n) if n else (0.0, math.inf)
    chance = None if limit is None else count_p_above(k, n * limit)
    return _rate(k, n, exact, _drawn(events, trials, resampled), _num_groups(trials, resampled), confidence, limit, chance)


def _rate(
    k: int,
    n: int,
    exact: tuple[float, float],
    drawn: NDArray[np.float64],
    num_independent: int,
    confidence: float,
    limit: float | None,
    chance: float | None,
) -> Rate:
    if not n:
        return Rate(events=k, trials=0, value=None, interval=None)
    low, high = exact
    if num_independent > 1 and len(drawn) and drawn.std() > 0:
        wider = interval(drawn, num_independent, confidence)
        low, high = max(min(low, wider.low), 0.0), max(high, wider.high)
        if limit is not None and chance is not None:
            chance = max(chance, p_value(-drawn, num_independent, -limit))
    bounds = Interval(low=low, high=high, confidence=confidence)
    return Rate(events=k, trials=n, value=k / n, interval=bounds, p_above=chance)


def _drawn(events: NDArray[np.integer], trials: NDArray[np.integer], resampled: Resampled) -> NDArray[np.float64]:
    """The rate in each resample that holds a trial."""
    over, under = resampled.weights @ events, resampled.weights @ trials
    drawn: NDArray[np.float64] = over[under > 0] / under[under > 0]
    return drawn


def _num_groups(trials: NDArray[np.integer], resampled: Resampled) -> int:
    """In how many groups of images there is a trial: so few facts say how far groups differ."""
    return len(np.unique(resampled.groups[trials > 0]))


def share_high(events: int, trials: int, confidence: float) -> float:
    """The highest share under which so few events are no surprise."""
    if events >= trials:
        return 1.0
    return _crossing(lambda p: _binomial_cdf(events, trials, p), 1 - confidence, 0.0, 1.0)


def share_low(events: int, trials: int, confidence: float) -> float:
    """The lowest share under which so many events are no surprise."""
    if events == 0:
        return 0.0
    return _crossing(lambda p: _binomial_cdf(events - 1, trials, p), confidence, 0.0, 1.0)


def count_high(events: int, confidence: float) -> float:
    """The highest expected count under which so few events are no surprise."""
    top = events + 10 * math.sqrt(events + 1) - 2 * math.log(1 - confidence) + 10
    return _crossing(lambda rate: _poisson_cdf(events, rate), 1 - confidence, 0.0, top)


def count_low(events: int, confidence: float) -> float:
    """The lowest expected count under which so many events are no surprise."""
    if events == 0:
        return 0.0
    return _crossing(lambda rate: _poisson_cdf(events - 1, rate), confidence, 0.0, float(events))


def share_p_above(events: int, trials: int, limit: float) -> float:
    """How likely so many events or more are, if their share is `limit`."""
    if events == 0 or limit >= 1:
        return 1.0
    return max(1 - _binomial_cdf(events - 1, trials, limit), 0.0) if limit > 0 else 0.0


def count_p_above(events: int, expected: float) -> float:
    """How likely so many events or more are where `expected` are."""
    if events == 0:
        return 1.0
    return max(1 - _poisson_cdf(events - 1, expected), 0.0) if expected > 0 else 0.0


def trials_without_event(limit: float, confidence: float) -> int | None:
    """How many trials without a single event show a share below `limit`; the rule of three is 3 / limit at 95 %.

    None for a limit of zero: no number of trials shows that.
    """
    if limit <= 0:
        return None
    return 1 if limit >= 1 else math.ceil(math.log(1 - confidence) / math.log1p(-limit))


def _crossing(falling: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where a falling function comes down to `target`."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > target else (low, middle)
    return (low + high) / 2


def _binomial_cdf(k: int, n: int, p: float) -> float:
    """The probability of at most `k` of `n`, 0 < p < 1."""
    i = np.arange(1, k + 1)
    log_terms = np.concatenate([[0.0], np.cumsum(np.log((n - i + 1) / i) + math.log(p) - math.log1p(-p))])
    return float(np.exp(log_terms + n * math.log1p(-p)).sum())


def _poisson_cdf(k: int, rate: float) -> float:
    """The probability of at most `k` where `rate` > 0 are expected."""
    i = np.arange(1, k + 1)
    log_terms = np.concatenate([[0.0], np.cumsum(math.log(rate) - np.log(i))])
    return float(np.exp(log_terms - rate).sum())
