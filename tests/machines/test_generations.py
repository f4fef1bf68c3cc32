"""Who trains with whom, decided from what heartbeats show."""

from collections.abc import Mapping

import pytest

from nightowl.machines.generations import (
    FEWER_AFTER_SECONDS,
    Lookout,
    Sight,
    lost_members,
    next_generation,
    port_of,
    room_for_more,
)
from nightowl.machines.records import Generation
from tests.machines.jobs import NOW, RUN, a_beat, a_generation, a_job


def seen(silent: float = 0, alive: bool = True, **states: str) -> dict[str, Sight]:
    """Nodes by name, such as a="ready"."""
    return {name: Sight(a_beat(name, state=state), silent, alive) for name, state in states.items()}


def chosen(sights: Mapping[str, Sight], waited: float = 0, newest: Generation | None = None, **job: object) -> object:
    """The members in order of rank, or why to wait."""
    found = next_generation(a_job(**job), newest, sights, waited, NOW)
    return found if isinstance(found, str) else [member.instance for member in found.members]


def test_a_heartbeat_is_as_old_as_the_time_since_it_was_seen_to_change() -> None:
    lookout, first = Lookout(), a_beat()
    assert lookout.look([first], 100)["i-1"] == Sight(first, 0, False), "it may be of a node that is no more"
    assert lookout.look([first], 130)["i-1"] == Sight(first, 30, False)
    second = a_beat(said="changed")
    assert lookout.look([second], 131)["i-1"] == Sight(second, 0, True)
    assert lookout.look([], 132) == {}


@pytest.mark.parametrize(
    ("sights", "waited", "job", "expected"),
    [
        (seen(a="ready"), 0, {}, ["a"]),
        (seen(b="ready", a="ready"), 0, {"nodes": 2, "min_nodes": 2}, ["a", "b"]),
        (seen(a="ready", b="ready"), 0, {}, ["a"]),
        (seen(a="ready"), 9e9, {"nodes": 2, "min_nodes": 2}, "1 of 2 nodes are there"),
        (seen(a="ready"), 30, {"nodes": 2}, "1 of 2 nodes are there; going on with them in 60 s"),
        (seen(a="ready"), FEWER_AFTER_SECONDS, {"nodes": 2}, ["a"]),
        (seen(a="ready", b="training"), 9e9, {"nodes": 2}, "waiting for b to save and end"),
        (
            seen(a="ready", b="booting", c="gone", d="leaving"),
            0,
            {"nodes": 2},
            "1 of 2 nodes are there; going on with them in 90 s",
        ),
        (seen(a="ready", silent=61), 0, {}, "0 of 1 nodes are there"),
        (seen(a="ready", alive=False), 0, {}, "0 of 1 nodes are there"),
        (seen(a="training", silent=61), 0, {}, "0 of 1 nodes are there"),
    ],
    ids=[
        "one is enough",
        "two in order of name",
        "one more than wanted",
        "never fewer than allowed",
        "a replacement may come",
        "it did not come",
        "one still commits",
        "others are not ready",
        "silent",
        "left behind",
        "died while it committed",
    ],
)
def test_a_generation_is_of_those_who_are_there(
    sights: dict[str, Sight], waited: float, job: dict[str, object], expected: object
) -> None:
    assert chosen(sights, waited, **job) == expected


def test_who_was_there_before_keeps_its_place_and_a_replacement_comes_last() -> None:
    newest = a_generation(3, "c", "b")
    assert chosen(seen(a="ready", b="ready"), newest=newest, nodes=2) == ["b", "a"], "rank 0 is gone: the next one leads"
    assert chosen(seen(a="ready", c="ready"), newest=newest, nodes=2) == ["c", "a"]


def test_generations_are_counted_and_each_meets_at_a_port_of_its_own() -> None:
    found = next_generation(a_job(), a_generation(3), seen(a="ready"), 0, NOW)
    assert isinstance(found, Generation) and found.number == 4 and found.port == port_of(RUN, 4)
    ports = {port_of(RUN, number) for number in range(100)}
    assert len(ports) > 90 and all(20000 <= port < 30000 for port in ports)


def test_members_are_lost_that_leave_or_are_silent_or_were_never_there() -> None:
    sights = seen(a="training") | seen(b="training", silent=61) | seen(c="leaving")
    lost = lost_members(a_generation(1, "a", "b", "c", "d"), sights, 60)
    assert set(lost) == {1, 2, 3}
    assert lost[1] == "node 1 (b) has been silent for 61 s"
    assert "leaves" in lost[2] and "no heartbeat" in lost[3]


def test_a_member_whose_heart_was_not_yet_seen_to_beat_is_not_lost() -> None:
    assert lost_members(a_generation(1, "a"), seen(a="ready", alive=False), 60) == {}


def test_there_is_room_for_more_only_where_fewer_train_than_wanted_and_another_is_ready() -> None:
    small = a_generation(1, "a")
    assert room_for_more(a_job(nodes=2), small, seen(a="training", b="ready"))
    assert not room_for_more(a_job(nodes=2), small, seen(a="training", b="booting"))
    assert not room_for_more(a_job(nodes=2), small, seen(a="training") | seen(b="ready", silent=61))
    assert not room_for_more(a_job(nodes=1), small, seen(a="training", b="ready"))
