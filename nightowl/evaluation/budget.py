"""Many nights on one test set: how much error tonight's decision may still cost.

At 5 % a night a year brings eighteen false promotions. So each decision spends of a budget that belongs to a test set, in
expected false promotions; a share of what is left is spent at a time, so that it never runs out and its sum is never exceeded.
Pure: the history comes in.
"""

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from nightowl.errors import DataError, remedy
from nightowl.evaluation.holdout import Holdout, is_same
from nightowl.files import write_atomic
from nightowl.records import Record

_LEAST = 1e-12  # never quite nothing: an overdrawn budget asks for seven standard deviations, and the words need no other case


class Question(Record):
    """What a decision asks: may these weights replace those, which must hold against a reference (None: the same), on what."""

    candidate: str
    champion: str
    reference: str | None
    holdout: Holdout


class Spent(Record):
    """A decision of the past, and the probability of a false promotion that it was allowed."""

    night: str
    question: Question
    alpha: float


class Spending(Record):
    """Tonight's decision: `alpha` of it, after `num_before` others on this test set have left `left` of `total`."""

    question: Question
    alpha: float
    num_before: int
    left: float
    total: float


def spending_tonight(history: Sequence[Spent], question: Question, first: float, total: float = 1.0) -> Spending:
    """What tonight's decision may spend: `first` on a fresh test set, then the same share of what is left of `total`.

    Over any number of nights the sum stays below `total`. A test set that shares less than half of its images with those of
    the past starts afresh. A question that was asked before, as when a night is repeated, counts once. A night that compared
    nothing has no place in the history.

    Raises:
        ValueError: unless 0 < first <= total and first <= 0.5.
    """
    if not 0 < first <= total or first > 0.5:
        raise ValueError(f"expected 0 < first <= total and first <= 0.5, got first {first}, total {total}")
    others = spent_on(history, question.holdout)
    others.pop(question, None)
    left = max(total - sum(others.values()), 0.0)
    alpha = max(first * left / total, _LEAST)
    return Spending(question=question, alpha=alpha, num_before=len(others), left=left, total=total)


def spent_on(history: Sequence[Spent], holdout: Holdout) -> dict[Question, float]:
    """The questions that were asked of this test set, and what each was allowed."""
    asked: dict[Question, float] = {}
    for each in history:
        if is_same(each.question.holdout, holdout):
            asked[each.question] = max(each.alpha, asked.get(each.question, 0.0))
    return asked


_HISTORY = TypeAdapter(tuple[Spent, ...])


def write_history(path: Path, history: Sequence[Spent]) -> None:
    """Publish the decisions of the past at `path`."""
    write_atomic(path, _HISTORY.dump_json(tuple(history)) + b"\n")


def read_history(path: Path) -> tuple[Spent, ...]:
    """The pinned decisions of the past. Raises DataError when there are none pinned, or it is something else."""
    try:
        return _HISTORY.validate_json(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{path}: no pinned decisions; {remedy(path)}") from None
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not a list of decisions ({reason}); pin the inputs again") from error
