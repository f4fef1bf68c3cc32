"""The reference and the error budget, read from what happened."""

from datetime import UTC, datetime

import pytest

from nightowl.evaluation.budget import Question, Spending
from nightowl.evaluation.holdout import Holdout
from nightowl.registry.decisions import budget_left, decisions_of, reference_of
from nightowl.registry.history import Event, champions, ever_champion, previous_champion, taken_back
from nightowl.registry.version import VersionInfo
from tests.night.test_past import info
from tests.registry.test_history import Step, events


def versions(**better_than: str) -> list[VersionInfo]:
    """Versions 1 to 5; `v2="1"`: version 2 was shown to be better than version 1, the reference of its night."""
    made = []
    for number in "12345":
        plain = info(number, "former champion", None)
        record = {"renews_reference": f"v{number}" in better_than, "reference_version": better_than.get(f"v{number}", "1")}
        made.append(plain.model_copy(update={"record": plain.record.model_copy(update=record)}))
    return made


P1, P2, P3 = ("promote", "1"), ("promote", "2"), ("promote", "3")


@pytest.mark.parametrize(
    ("reason", "steps", "better_than", "reference"),
    [
        ("no champion, no reference", (), {}, None),
        ("the first champion is the first reference", (P1,), {}, "1"),
        ("promoted within the margin: it stays", (P1, P2, P3), {}, "1"),
        ("shown to be better: it moves", (P1, P2), {"v2": "1"}, "2"),
        ("better than the reference of then, which is no longer the one of now", (P1, P2, P3), {"v2": "1", "v3": "1"}, "2"),
        ("twice", (P1, P2, P3), {"v2": "1", "v3": "2"}, "3"),
        ("a rollback takes its move back", (P1, P2, P3, ("rollback", "2")), {"v3": "1"}, "1"),
        ("a rollback to the version that moved it", (P1, P2, P3, ("rollback", "2")), {"v2": "1"}, "2"),
        ("and on from there", (P1, P2, ("rollback", "1"), P3), {"v2": "1", "v3": "1"}, "3"),
        ("set by hand", (P1, P2, ("reference", "2")), {}, "2"),
        ("set by hand, which no rollback undoes", (P1, P2, ("reference", "5"), ("rollback", "1")), {}, "5"),
        ("set by hand, then shown to be better than that", (P1, ("reference", "4"), P2), {"v2": "4"}, "2"),
        ("a rollback to what the history does not know", (P1, ("rollback", "5")), {}, "5"),
    ],
)
def test_the_reference_is(reason: str, steps: tuple[Step, ...], better_than: dict[str, str], reference: str | None) -> None:
    assert reference_of(events(*steps), versions(**better_than)) == reference, reason


def test_a_promotion_that_never_came_to_pass_moves_nothing() -> None:
    first, second = events(P1, P2)
    abandoned = second.model_copy(update={"state": "abandoned"})
    assert reference_of([first, abandoned], versions(v2="1")) == "1"


def test_a_reference_set_by_hand_is_no_champion() -> None:
    at = datetime(2026, 1, 9, tzinfo=UTC)
    by_hand = Event(number=9, action="reference", version="3", came_from="1", reason="r", by="me", at=at, state="done")
    history = [*events(P1, P2), by_hand]
    assert champions(history) == ["1", "2"]
    assert ever_champion(history) == {"1", "2"}
    assert taken_back(history) == set()
    assert previous_champion(history, "2") == "1"


def spent(version: str, candidate: str, images: str, alpha: float, dirty: bool = False) -> VersionInfo:
    holdout = Holdout(version=images, num_images=len(images), sketch=tuple(images))
    question = Question(candidate=candidate, champion="c", reference=None, holdout=holdout)
    made = info(version, "not promoted", "1", dirty=dirty)
    spending = Spending(question=question, alpha=alpha, num_before=0, left=1.0, total=1.0)
    return made.model_copy(update={"record": made.record.model_copy(update={"spending": spending})})


NIGHTS = [
    info("1", "champion", None),
    spent("2", "two", "abcd", 0.05),
    spent("3", "three", "abcd", 0.04),
    spent("4", "three", "abcd", 0.04),
    spent("5", "five", "abcd", 0.04, dirty=True),
]


def test_every_judged_night_spends_refused_or_not_and_a_dirty_one_costs_nothing() -> None:
    assert [(each.night, each.alpha) for each in decisions_of(NIGHTS)] == [
        ("night 2", 0.05),
        ("night 3", 0.04),
        ("night 4", 0.04),
    ]


def test_the_budget_left_is_that_of_the_test_set_judged_on_last() -> None:
    left = budget_left(NIGHTS)
    assert left is not None
    assert (left.night, left.num_images, left.num_decisions, left.total) == ("night 4", 4, 2, 1.0)
    assert left.left == pytest.approx(0.91), "the repeated night asked the same again"
    fresh = budget_left([*NIGHTS, spent("6", "six", "wxyz", 0.05)])
    assert fresh is not None and (fresh.num_decisions, fresh.left) == (1, 0.95)
    assert budget_left(NIGHTS[:1]) is None
