"""Many nights on one test set: how much error tonight's decision may still cost, and against what it must hold.

At 5 % a night a year brings eighteen false promotions. So each decision spends of a budget that belongs to a version of the
test set, in expected false promotions; a share of what is left is spent at a time, so that it never runs out and its sum is
never exceeded. And a model that is a little worse each night, within the margin each time, is stopped by a reference: a version
that stays until something better is shown. Pure: the history comes in.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.intervals import Answer, non_inferior, superior
from nightowl.records import Record


class Spent(Record):
    """One decision of the past: on which version of the test set, and the probability of a false promotion it was allowed."""

    night: str
    test_version: str
    alpha: float


def alpha_tonight(history: Sequence[Spent], test_version: str, first: float, total: float = 1.0) -> float:
    """What tonight's decision may spend: `first` on a fresh test set, then the same share of what is left of `total`.

    Over any number of nights the sum stays below `total`. A new version of the test set starts afresh. A night that compared
    nothing has no place in the history.

    Raises:
        ValueError: unless 0 < first <= total and first < 0.5.
    """
    if not 0 < first <= total or first >= 0.5:
        raise ValueError(f"expected 0 < first <= total and first < 0.5, got first {first}, total {total}")
    spent = sum(each.alpha for each in history if each.test_version == test_version)
    return first * max(total - spent, 0.0) / total


def may_replace(
    to_champion: NDArray[np.float64],
    to_reference: NDArray[np.float64],
    num_independent: int,
    margin: float,
    confidence: float,
) -> Answer:
    """Whether a candidate is shown to lie within `margin` of the champion and of the reference, by differences (R,) to each."""
    answers = [non_inferior(differences, num_independent, margin, confidence) for differences in (to_champion, to_reference)]
    if "no" in answers:
        return "no"
    return "yes" if answers == ["yes", "yes"] else "unknown"


def reference_after(
    reference: str, promoted: str, to_reference: NDArray[np.float64], num_independent: int, confidence: float
) -> str:
    """The reference after a promotion: the promoted version once it is shown to be better, otherwise the one that stood."""
    return promoted if superior(to_reference, num_independent, confidence) == "yes" else reference
