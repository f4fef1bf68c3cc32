"""From resampled differences to decisions with a stated confidence: shown, shown not to be, or not enough data to tell.

Pure arithmetic on numbers (R,), candidate less champion, one a resample of `num_independent` images (or groups of them, where
whole groups are drawn). A bound is one-sided: of `confidence` 0.95 it lies on the wrong side of the truth one time in twenty.
Resamples of few images vary too little; bounds are widened for that as Hesterberg (2015, "expanded percentile") shows.
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


def can_show(num_independent: int, confidence: float) -> bool:
    """Whether so many images can show anything: if all of them agree, chance does that with probability 1 / 2^number."""
    return 0.5**num_independent <= 1 - confidence


def interval(differences: NDArray[np.float64], num_independent: int, confidence: float) -> Interval:
    """The percentile bounds of resampled differences (R,); beyond what R resamples resolve, the normal curve's.

    Raises:
        ValueError: when there are no differences, fewer than two images, or confidence is not between 0.5 and 1.
    """
    if not len(differences):
        raise ValueError("no resampled differences: no bound can be given")
    if num_independent < 2:
        raise ValueError(f"resamples of {num_independent} image do not vary: no bound can be given")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence must be from 0.5 to below 1, got {confidence}")
    reach = _student(NormalDist().inv_cdf(confidence), num_independent - 1)
    reach *= math.sqrt(num_independent / (num_independent - 1))
    beyond = NormalDist().cdf(-reach)
    if beyond * len(differences) >= _FEWEST_BEYOND:
        low, high = np.quantile(differences, [beyond, 1 - beyond])
    else:
        low, high = differences.mean() + np.array([-reach, reach]) * differences.std()
    return Interval(low=float(low), high=float(high), confidence=confidence)


def non_inferior(differences: NDArray[np.float64], num_independent: int, margin: float, confidence: float) -> Answer:
    """Whether the candidate is shown to lie at most `margin` (>= 0) below the champion."""
    if not can_show(num_independent, confidence):
        return "unknown"
    bounds = interval(differences, num_independent, confidence)
    if bounds.low >= -margin - _ROUNDING:
        return "yes"
    return "no" if bounds.high < -margin - _ROUNDING else "unknown"


def superior(differences: NDArray[np.float64], num_independent: int, confidence: float) -> Answer:
    """Whether the candidate is shown to be better than the champion. A difference of exactly nothing is not."""
    if not can_show(num_independent, confidence):
        return "unknown"
    bounds = interval(differences, num_independent, confidence)
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


def p_value(differences: NDArray[np.float64], num_independent: int, limit: float) -> float:
    """How likely differences so far below `limit` would be if the truth lay at it. Small: a drop beyond it is shown.

    The share of resamples not below the limit; where few are left, the normal curve's tail; widened as bounds are. Never below
    1 / 2^num_independent, the least that any test of so many pairs can give: three images show nothing.

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
    return max(_student_tail(share, num_independent), 0.5**num_independent)


def holm(p_values: Sequence[float], alpha: float) -> tuple[bool, ...]:
    """Which of many findings are shown, such that a false one is among them with probability `alpha` at most (Holm 1979)."""
    shown = [False] * len(p_values)
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] > alpha / (len(p_values) - place):
            break
        shown[index] = True
    return tuple(shown)


def _student(z: float, degrees: int) -> float:
    """Student's quantile for the normal quantile `z` (Abramowitz and Stegun 26.7.5)."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / math.pow(degrees, power) for power, term in enumerate(terms, start=1))


def _student_tail(share: float, num_independent: int) -> float:
    """A share of resamples as the probability that it stands for (Abramowitz and Stegun 26.7.8)."""
    if num_independent < 2 or not 0 < share < 1:
        return share
    degrees = num_independent - 1
    t = -NormalDist().inv_cdf(share) * math.sqrt(degrees / num_independent)
    return NormalDist().cdf(-t * (1 - 1 / (4 * degrees)) / math.sqrt(1 + t * t / (2 * degrees)))
