"""What a node does next, as a table."""

from dataclasses import replace
from datetime import timedelta

import pytest

from nightowl.machines.generations import Sight
from nightowl.machines.records import Cancel, GenerationEnd, RunEnd
from nightowl.machines.supervise import (
    COMMIT_SECONDS,
    HOPELESS_SECONDS,
    Begin,
    CloseGeneration,
    CloseRun,
    Finish,
    Leave,
    Open,
    Stop,
    View,
    Wait,
    Work,
    decide,
)
from tests.machines.jobs import NOW, a_beat, a_generation, a_job
from tests.machines.test_generations import seen
from tests.machines.test_poison import failures

PAIR = a_generation(2, "a", "b")
TRAINING = seen(a="training", b="training")
END = GenerationEnd(number=2, how="preempted", message="b: taken back", at=NOW, by="b")
LOST = END.model_copy(update={"how": "member_lost", "message": "b is gone"})


def view(**changes: object) -> View:
    """Node `a`, rank 0 of two that train in generation 2, and all is well."""
    values = View(
        job=a_job(nodes=2),
        me="a",
        now=NOW,
        end=None,
        cancel=None,
        newest=PAIR,
        newest_end=None,
        stage="train",
        failures=(),
        sights=TRAINING,
        work=Work("train", 2),
        notice=None,
        waited_seconds=0,
        quiet_seconds=0,
    )
    return replace(values, **changes)  # type: ignore[arg-type]


def over(how: str = "done") -> RunEnd:
    return RunEnd(how=how, message="", at=NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen_by_node", "kind", "why"),
    [
        (view(), Wait, "all is well"),
        (view(end=over()), Stop, "the run is over: what runs ends first"),
        (view(end=over(), work=None), Leave, "then the node"),
        (view(now=NOW + timedelta(hours=12)), CloseRun, "the deadline"),
        (view(cancel=Cancel(by="me", at=NOW)), CloseRun, "an operator's wish"),
        (view(quiet_seconds=1801), CloseRun, "no step for too long"),
        (view(quiet_seconds=1799), Wait, "not for too long"),
        (view(notice="taken back"), CloseGeneration, "a notice ends the generation first, so that all save"),
        (view(notice="taken back", newest_end=END), Stop, "then its work"),
        (view(notice="taken back", newest_end=END, work=None), Leave, "and then it goes"),
        (view(me="b", notice="x", stage="prepare", work=None), Leave, "rank 0 does not need it for other stages"),
        (view(me="b", notice="x", work=None), CloseGeneration, "it is needed where all train"),
        (view(newest=None, work=None, sights=seen(a="ready")), Wait, "too few as yet"),
        (view(newest=None, work=None, sights=seen(a="ready", b="ready")), Open, "enough for the first"),
        (view(newest_end=END, work=None, sights=seen(a="ready", b="ready")), Open, "enough for the next"),
        (view(newest_end=END), Stop, "its generation has ended"),
        (view(newest_end=END, work=None, failures=failures(5, 5, 5)), CloseRun, "poison"),
        (view(sights=seen(a="training") | seen(b="training", silent=61)), CloseGeneration, "a peer is silent"),
        (view(sights=seen(a="training")), CloseGeneration, "a peer has no heartbeat"),
        (view(sights=seen(a="running", b="gone"), stage="prepare", work=Work("prepare", 2)), Wait, "not needed yet"),
        (view(me="b", sights=seen(a="gone", b="ready"), stage="prepare", work=None), CloseGeneration, "rank 0 is gone"),
        (
            view(me="c", sights=seen(a="gone", b="gone", c="ready"), work=None),
            CloseGeneration,
            "all are gone: a newcomer ends it",
        ),
        (view(me="c", sights=TRAINING | seen(c="ready"), work=None), Wait, "a spare waits"),
        (view(me="c", work=Work("train", 1)), Stop, "one that missed the end of its generation"),
        (view(work=None), Begin, "rank 0 begins"),
        (view(work=None, me="b"), Begin, "the others train too"),
        (view(work=None, me="b", stage="prepare"), Wait, "the other stages are rank 0's"),
        (view(work=None, stage="prepare"), Begin, "which it runs"),
        (view(work=Work("prepare", 2, "done")), Begin, "the next stage after one that is done"),
        (view(work=Work("train", 1, "preempted")), Begin, "the same in the next generation"),
        (view(work=Work("train", 2, "done")), Finish, "rank 0 says that it is done"),
        (view(work=Work("train", 2, "done"), me="b"), Wait, "the others wait for that"),
        (view(me="b", stage="evaluate"), Stop, "a host that still waits for a training that was restored"),
        (view(work=Work("train", 2, "preempted", "m")), CloseGeneration, "saved: the next may begin"),
        (view(work=Work("train", 2, "failed", "m", 59)), Wait, "a failure may be that of a peer that is gone"),
        (view(work=Work("train", 2, "failed", "m", 61)), CloseGeneration, "it is not"),
        (view(newest=a_generation(2, "a"), work=Work("train", 2, "failed")), CloseGeneration, "alone there is no peer"),
        (view(stage=None, work=None), CloseRun, "all stages are done"),
        (view(stage=None, work=None, me="b"), Wait, "rank 0 says so"),
        (view(newest=a_generation(2, "a"), sights=seen(a="training", b="ready")), CloseGeneration, "a second node has come"),
    ],
)
def test_a_node_does_what_its_view_asks_for(seen_by_node: View, kind: type, why: str) -> None:
    assert type(decide(seen_by_node)) is kind, f"{why}: {decide(seen_by_node)}"


def test_a_node_that_was_noticed_is_replaced_and_one_whose_run_is_over_is_not() -> None:
    noticed, done = decide(view(notice="x", newest_end=END, work=None)), decide(view(end=over(), work=None))
    assert isinstance(noticed, Leave) and not noticed.decrement
    assert isinstance(done, Leave) and done.decrement


def test_how_the_run_ends_is_said() -> None:
    assert decide(view(now=NOW + timedelta(hours=13))) == CloseRun(
        "deadline", "it is 2026-07-01 15:00 UTC, past the run's deadline; run it again and it goes on"
    )
    assert decide(view(cancel=Cancel(by="me@host", at=NOW))) == CloseRun("cancelled", "cancelled by me@host")
    assert decide(view(stage=None, work=None)) == CloseRun("done", "")
    stalled = decide(view(quiet_seconds=1801))
    assert isinstance(stalled, CloseRun) and stalled.how == "failed"
    assert stalled.message.startswith("no step was committed for 30 minutes (stall_minutes)")
    idle = decide(view(quiet_seconds=1801, newest_end=END))
    assert isinstance(idle, CloseRun) and idle.message.startswith("no node has trained for 30 minutes")


def test_a_generation_says_why_it_ends() -> None:
    assert decide(view(notice="taken back")) == CloseGeneration("preempted", "a: taken back")
    silent = {"a": TRAINING["a"], "b": Sight(a_beat("b", state="training"), 99, True)}
    assert decide(view(sights=silent)) == CloseGeneration("member_lost", "node 1 (b) has been silent for 99 s")
    assert decide(view(work=Work("train", 2, "failed", "no memory", 61))) == CloseGeneration("failed", "no memory")


def test_ranks_that_have_taken_no_step_have_nothing_to_commit_either() -> None:
    waiting = {name: Sight(a_beat(name, state="training", generation=2), 0, True) for name in ("a", "b")}
    assert decide(view(newest_end=END, sights=waiting)) == Stop(HOPELESS_SECONDS, "b: taken back")
    at_it = {"a": Sight(a_beat("a", state="training", generation=2, taken=7), 0, True), "b": waiting["b"]}
    assert decide(view(newest_end=END, sights=at_it, me="b")) == Stop(COMMIT_SECONDS, "b: taken back")


def test_ranks_whose_peer_is_gone_have_nothing_to_commit() -> None:
    assert decide(view(newest_end=LOST)) == Stop(HOPELESS_SECONDS, "b is gone")
    assert decide(view(newest_end=END)) == Stop(COMMIT_SECONDS, "b: taken back")
