"""The history of champions, as pure records."""

from datetime import UTC, datetime

import pytest

from nightowl.registry.history import Event, champions, ever_champion, previous_champion, settled, taken_back

Step = tuple[str, str]


def events(*steps: Step) -> list[Event]:
    """Completed events from ("promote", "1"), ("rollback", "1")...; each comes from the one before."""
    made: list[Event] = []
    champion = None
    for number, (action, version) in enumerate(steps, 1):
        made.append(
            Event.model_validate(
                {
                    "number": number,
                    "action": action,
                    "version": version,
                    "came_from": champion,
                    "reason": "a test",
                    "by": "tester",
                    "at": datetime(2026, 1, number, tzinfo=UTC),
                    "state": "done",
                }
            )
        )
        champion = version
    return made


UP_TO_3 = (("promote", "1"), ("promote", "2"), ("promote", "3"))


@pytest.mark.parametrize(
    ("reason", "steps", "champion", "previous", "back"),
    [
        ("nothing happened yet", (), "1", None, set()),
        ("only one champion so far", (("promote", "1"),), "1", None, set()),
        ("three in a row", UP_TO_3, "3", "2", set()),
        ("after a rollback, the one before that", (*UP_TO_3, ("rollback", "2")), "2", "1", {"3"}),
        ("two rollbacks", (*UP_TO_3, ("rollback", "2"), ("rollback", "1")), "1", None, {"2", "3"}),
        ("a new one after a rollback", (*UP_TO_3, ("rollback", "2"), ("promote", "4")), "4", "2", {"3"}),
        ("what was taken back and promoted again by hand", (*UP_TO_3, ("rollback", "2"), ("promote", "3")), "3", "2", set()),
        ("an old one promoted again", (*UP_TO_3, ("promote", "1")), "1", "3", set()),
        ("none left, then a new one", (*UP_TO_3, ("withdraw", "3"), ("promote", "4")), "4", None, {"3"}),
        ("withdrawn and promoted again by hand", (("promote", "1"), ("withdraw", "1"), ("promote", "1")), "1", None, set()),
        ("the alias moved by another tool: the last known one", UP_TO_3, "9", "3", set()),
        ("the alias moved by another tool to an old one", UP_TO_3, "2", "1", set()),
    ],
)
def test_a_rollback_goes_to(reason: str, steps: tuple[Step, ...], champion: str, previous: str | None, back: set[str]) -> None:
    history = events(*steps)
    assert previous_champion(history, champion) == previous, reason
    assert taken_back(history) == back, reason


def test_the_last_of_the_champions_is_the_one_now() -> None:
    history = events(*UP_TO_3, ("rollback", "2"), ("promote", "4"))
    assert champions(history) == ["1", "2", "4"]
    assert ever_champion(history) == {"1", "2", "3", "4"}


def test_an_event_whose_alias_moved_is_done() -> None:
    *before, last = events(*UP_TO_3)
    begun = last.model_copy(update={"state": "begun"})
    assert settled([*before, begun], "3")[-1].state == "done"


def test_an_event_whose_alias_did_not_move_never_came_to_pass() -> None:
    *before, last = events(*UP_TO_3)
    history = settled([*before, last.model_copy(update={"state": "begun"})], "2")
    assert history[-1].state == "abandoned"
    assert champions(history) == ["1", "2"]
    assert "3" not in ever_champion(history)


def test_a_rollback_that_never_came_to_pass_takes_nothing_back() -> None:
    *before, last = events(*UP_TO_3, ("rollback", "2"))
    history = settled([*before, last.model_copy(update={"state": "begun"})], "3")
    assert taken_back(history) == set()
    assert previous_champion(history, "3") == "2"


def test_events_are_read_in_order_of_their_number() -> None:
    history = events(*UP_TO_3)
    assert settled(reversed(history), "3") == history


@pytest.mark.parametrize(("champion", "state"), [(None, "done"), ("2", "abandoned")])
def test_a_withdrawal_cut_off_is_explained_by_the_alias(champion: str | None, state: str) -> None:
    *before, last = events(("promote", "1"), ("promote", "2"), ("withdraw", "2"))
    assert settled([*before, last.model_copy(update={"state": "begun"})], champion)[-1].state == state
