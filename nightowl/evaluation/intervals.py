"""From resampled differences to decisions with a stated confidence: shown, shown not to be, or not enough data to tell.

Pure arithmetic on numbers (R,), candidate less champion, one a resample. A bound is one-sided: of `confidence` 0.95 it lies on
the wrong side of the truth in one case of twenty.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nightowl.records import Record

Answer = Literal["yes", "no", "unknown"]

_FEWEST_BEYOND = 10  # a quantile that fewer resamples lie beyond is noise; the normal curve through them says more
_ROUNDING = 1e-9  # 0.51 - 0.50 is a little more than 0.01, and must not break a limit of 0.01


class Interval(Record):
    """A lower and an upper bound, each one-sided with `confidence`; both hold together with 2 x confidence - 1 or more."""

    low: float
    high: float
    confidence: float


def interval(differences: NDArray[np.float64], confidence: float) -> Interval:
    """The percentile bounds of resampled differences (R,); beyond what R resamples resolve, the normal curve's.

    Raises:
        ValueError: when there are no differences, or confidence is not between 0.5 and 1.
    """
    if not len(differences):
        raise ValueError("no resampled differences: no bound can be given")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence must be from 0.5 to below 1, got {confidence}")
    if (1 - confidence) * len(differences) >= _FEWEST_BEYOND:
        low, high = np.quantile(differences, [1 - confidence, confidence])
    else:
        reach = NormalDist().inv_cdf(confidence) * differences.std()
        low, high = differences.mean() - reach, differences.mean() + reach
    return Interval(low=float(low), high=float(high), confidence=confidence)


def non_inferior(differences: NDArray[np.float64], margin: float, confidence: float) -> Answer:
    """Whether the candidate is shown to lie at most `margin` (>= 0) below the champion."""
    bounds = interval(differences, confidence)
    if bounds.low >= -margin - _ROUNDING:
        return "yes"
    return "no" if bounds.high < -margin - _ROUNDING else "unknown"


def superior(differences: NDArray[np.float64], confidence: float) -> Answer:
    """Whether the candidate is shown to be better than the champion. A difference of exactly nothing is not."""
    bounds = interval(differences, confidence)
    if bounds.low > _ROUNDING:
        return "yes"
    return "no" if bounds.high <= _ROUNDING else "unknown"


def images_that_suffice(num_images: int, difference: float, bounds: Interval, limit: float) -> int | None:
    """How many images like these would decide on which side of `limit` a difference of this size lies.

    An interval shrinks with the root of the number of images. None when the difference is the limit: no number would do.
    """
    distance = difference - limit
    reach = max(difference - bounds.low if distance > 0 else bounds.high - difference, 0.0)
    if abs(distance) < _ROUNDING:
        return None
    return max(num_images, math.ceil(num_images * (reach / distance) ** 2))


def p_value(differences: NDArray[np.float64], limit: float, num_images: int) -> float:
    """How likely differences so far below `limit` would be if the truth lay at it. Small: a drop beyond it is shown.

    The share of resamples not below the limit; where few are left, the normal curve's tail. Never below 1 / 2^num_images, the
    least that any test of `num_images` pairs (or groups, where these are drawn) can give: three images show nothing.

    Raises:
        ValueError: when there are no differences.
    """
    if not len(differences):
        raise ValueError("no resampled differences: nothing can be tested")
    beyond = int((differences >= limit - _ROUNDING).sum())
    share = beyond / len(differences)
    if beyond < _FEWEST_BEYOND:
        spread = float(differences.std())
        tail = 1 - NormalDist(float(differences.mean()), spread).cdf(limit) if spread > 0 else 0.0
        share = min(max(share, tail), _FEWEST_BEYOND / len(differences))
    return max(share, 0.5**num_images)


def holm(p_values: Sequence[float], alpha: float) -> tuple[bool, ...]:
    """Which of many findings are shown, such that a false one is among them with probability `alpha` at most (Holm 1979)."""
    shown = [False] * len(p_values)
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] > alpha / (len(p_values) - place):
            break
        shown[index] = True
    return tuple(shown)


def wilson(successes: int, trials: int, confidence: float) -> Interval:
    """Bounds of a rate such as recall or a miss rate (Wilson 1927), honest near 0 and 1 and for few trials.

    Raises:
        ValueError: without trials: a rate of nothing is unknown, not zero.
    """
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"expected 0 <= successes <= trials and a trial at least, got {successes} of {trials}")
    z = NormalDist().inv_cdf(confidence)
    rate, scale = successes / trials, 1 + z * z / trials
    middle = (rate + z * z / (2 * trials)) / scale
    reach = z / scale * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    return Interval(low=max(middle - reach, 0.0), high=min(middle + reach, 1.0), confidence=confidence)
