"""The budget holds over any number of nights, and the reference stops a slow decline."""

from itertools import pairwise

import numpy as np
import pytest

from nightowl.evaluation.budget import Spent, alpha_tonight, may_replace, reference_after


def nights(number: int, test_version: str = "test-1", first: float = 0.05, total: float = 1.0) -> list[Spent]:
    history: list[Spent] = []
    for index in range(number):
        alpha = alpha_tonight(history, test_version, first, total)
        history.append(Spent(night=f"night-{index}", test_version=test_version, alpha=alpha))
    return history


def differing(mean: float, spread: float = 0.001) -> np.ndarray:
    return np.linspace(mean - spread, mean + spread, 1001)


def test_a_fresh_test_set_allows_the_stated_error() -> None:
    assert alpha_tonight([], "test-1", 0.05) == 0.05


@pytest.mark.parametrize("total", [0.1, 1.0])
def test_a_thousand_nights_never_spend_more_than_the_budget(total: float) -> None:
    history = nights(1000, total=total)
    assert sum(each.alpha for each in history) <= total
    assert all(later.alpha <= earlier.alpha for earlier, later in pairwise(history))


def test_a_new_version_of_the_test_set_starts_afresh() -> None:
    history = nights(50)
    assert alpha_tonight(history, "test-1", 0.05) < 0.005
    assert alpha_tonight(history, "test-2", 0.05) == 0.05


def test_an_overspent_budget_allows_nothing_more() -> None:
    assert alpha_tonight([Spent(night="n", test_version="t", alpha=1.2)], "t", 0.05) == 0


@pytest.mark.parametrize(("first", "total"), [(0.0, 1.0), (0.2, 0.1), (0.5, 1.0)])
def test_a_budget_that_makes_no_sense_is_refused(first: float, total: float) -> None:
    with pytest.raises(ValueError, match="expected 0 < first <= total"):
        alpha_tonight([], "t", first, total)


@pytest.mark.parametrize(
    ("to_champion", "to_reference", "answer", "reason"),
    [
        (differing(0.0), differing(0.0), "yes", "as good as both"),
        (differing(-0.005), differing(-0.03), "no", "within the margin tonight, far below where it began"),
        (differing(-0.03), differing(0.0), "no", "worse than the champion"),
        (differing(0.0), differing(0.0, spread=0.1), "unknown", "too little data on the reference"),
        (differing(0.0, spread=0.1), differing(-0.03), "no", "one that is shown to fail is enough"),
    ],
)
def test_a_candidate_must_hold_against_champion_and_reference(
    to_champion: np.ndarray, to_reference: np.ndarray, answer: str, reason: str
) -> None:
    assert may_replace(to_champion, to_reference, 500, 0.01, 0.95) == answer, reason


def test_the_reference_moves_only_to_something_shown_to_be_better() -> None:
    assert reference_after("v1", "v2", differing(0.01), 500, 0.95) == "v2"
    assert reference_after("v1", "v2", differing(0.0), 500, 0.95) == "v1"
    assert reference_after("v1", "v2", differing(-0.005), 500, 0.95) == "v1"
