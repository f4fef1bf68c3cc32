"""The error budget holds over any number of nights."""

from itertools import pairwise
from pathlib import Path

import pytest

from nightowl.errors import DataError
from nightowl.evaluation.budget import Question, Spending, Spent, read_history, spending_tonight, write_history
from nightowl.evaluation.holdout import Holdout


def a_question(candidate: str, test_set: str = "a", images: str = "abcd") -> Question:
    holdout = Holdout(version=test_set, num_images=len(images), sketch=tuple(images))
    return Question(candidate=candidate, champion="champion", reference=None, holdout=holdout)


def after(history: list[Spent], question: Question, first: float = 0.05, total: float = 1.0) -> Spending:
    """Tonight's spending, which is history afterwards."""
    spending = spending_tonight(history, question, first, total)
    history.append(Spent(night=f"night-{len(history)}", question=question, alpha=spending.alpha))
    return spending


def nights(number: int, total: float = 1.0) -> list[Spent]:
    history: list[Spent] = []
    for index in range(number):
        after(history, a_question(f"candidate-{index}"), total=total)
    return history


def test_a_fresh_test_set_allows_the_stated_error() -> None:
    spending = spending_tonight([], a_question("one"), 0.05)
    assert (spending.alpha, spending.num_before, spending.left) == (0.05, 0, 1.0)


@pytest.mark.parametrize("total", [0.1, 1.0])
def test_a_thousand_nights_never_spend_more_than_the_budget(total: float) -> None:
    history = nights(1000, total=total)
    assert sum(each.alpha for each in history) <= total + 1e-8, "a trillionth a night is given on top"
    assert all(later.alpha <= earlier.alpha for earlier, later in pairwise(history))


@pytest.mark.parametrize(
    ("test_set", "images", "alpha", "reason"),
    [
        ("a", "abcd", 0.00385, "the same test set"),
        ("b", "abcd", 0.00385, "a label was corrected: the images are the same evidence"),
        ("b", "abcde", 0.00385, "one image more is still the same test set"),
        ("b", "cdef", 0.05, "half of the images are new: two of six are in both"),
        ("b", "wxyz", 0.05, "a new test set starts afresh"),
    ],
)
def test_what_was_spent_counts_for_test_sets_that_share_most_images(
    test_set: str, images: str, alpha: float, reason: str
) -> None:
    spending = spending_tonight(nights(50), a_question("new", test_set, images), 0.05)
    assert spending.alpha == pytest.approx(alpha, rel=0.01), reason


def test_a_night_that_is_repeated_asks_the_same_and_costs_nothing_more() -> None:
    history = nights(3)
    first = after(history, a_question("again"))
    assert after(history, a_question("again")) == first
    other = spending_tonight(history, a_question("another"), 0.05)
    assert other.num_before == 4
    assert other.left == pytest.approx(first.left - first.alpha)


def test_an_overdrawn_budget_leaves_next_to_nothing() -> None:
    spending = spending_tonight([Spent(night="n", question=a_question("one"), alpha=1.2)], a_question("two"), 0.05)
    assert 0 < spending.alpha < 1e-9
    assert spending.left == 0


@pytest.mark.parametrize(("first", "total"), [(0.0, 1.0), (0.2, 0.1), (0.6, 1.0)])
def test_a_budget_that_makes_no_sense_is_refused(first: float, total: float) -> None:
    with pytest.raises(ValueError, match="expected 0 < first <= total"):
        spending_tonight([], a_question("one"), first, total)


def test_the_pinned_history_comes_back_as_it_was(tmp_path: Path) -> None:
    write_history(tmp_path / "decisions.json", nights(2))
    assert list(read_history(tmp_path / "decisions.json")) == nights(2)


@pytest.mark.parametrize(("content", "message"), [(None, "no pinned decisions"), ('[{"night": 3}]', "not a list of decisions")])
def test_a_history_that_is_not_pinned_is_said(content: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "decisions.json"
    if content:
        path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_history(path)
