from collections.abc import Iterator, Mapping

import pytest

from nightowl.errors import RemoteError
from nightowl.machines.engine import Remains, RunStatus
from nightowl.machines.follow import PATIENCE_SECONDS, describe, end, follow, leave
from nightowl.machines.job import Job
from nightowl.machines.records import LogLine
from tests.machines.jobs import RUN, a_beat

WAITING = RunStatus(run_id=RUN, state="waiting")
AT_WORK = RunStatus(run_id=RUN, state="running", nodes=(a_beat(state="training", stage="train", step=40),))
JUDGING = RunStatus(run_id=RUN, state="running", nodes=(a_beat(state="running", stage="evaluate", step=40),))
DONE = RunStatus(run_id=RUN, state="done", stages_done=("prepare", "train"))


class Scripted:
    """An engine whose answers are written down: a status a look, the last for ever; None is a network that is away."""

    def __init__(self, *statuses: RunStatus | None, left: Remains = Remains()) -> None:  # noqa: B008
        self._statuses, self._left = list(statuses), left
        self.did: list[str] = []

    def submit(self, job: Job) -> str:
        raise AssertionError

    def renew(self, run_id: str) -> None:
        self.did.append("renew")

    def status(self, run_id: str) -> RunStatus:
        status = self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]
        if status is None:
            raise RemoteError("no route")
        return status

    def logs(self, run_id: str, after: Mapping[str, int]) -> Iterator[LogLine]:
        number = after.get("i-1", -1) + 1
        if number < 2:
            yield LogLine(instance="i-1", number=number, text=f"line {number}")

    def cancel(self, run_id: str) -> None:
        self.did.append("cancel")

    def tear_down(self, run_id: str) -> Remains:
        self.did.append("tear down")
        return self._left


class Clock:
    """Sleeping is what makes it later."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def followed(engine: Scripted) -> tuple[RunStatus, list[str]]:
    said: list[str] = []
    clock = Clock()
    return follow(engine, RUN, said.append, clock.sleep, clock), said


def test_each_line_and_each_change_is_said_once_and_every_look_renews() -> None:
    engine = Scripted(WAITING, AT_WORK, AT_WORK, JUDGING, DONE)
    status, said = followed(engine)
    assert status == DONE
    assert said == [
        "i-1: line 0",
        f"{RUN}: waiting; 0 nodes",
        "i-1: line 1",
        f"{RUN}: running; 1 node, train at step 40",
        f"{RUN}: running; 1 node, evaluate",
        f"{RUN}: done; done: prepare, train",
    ]
    assert engine.did == ["renew"] * 5


def test_a_network_that_is_away_for_a_while_is_said_once_and_borne() -> None:
    status, said = followed(Scripted(AT_WORK, None, None, None, DONE))
    assert status == DONE
    assert [line for line in said if "not reached" in line] == [f"{RUN}: not reached, trying again: no route"]


def test_one_that_stays_away_is_an_error_and_the_run_is_left_alone() -> None:
    engine, clock = Scripted(None), Clock()
    with pytest.raises(RemoteError, match="no route"):
        follow(engine, RUN, lambda line: None, clock.sleep, clock)
    assert clock.now > PATIENCE_SECONDS
    assert set(engine.did) == {"renew"}


def test_a_wish_to_end_gives_nodes_time_to_commit_and_then_ends_them() -> None:
    gone = AT_WORK.model_copy(update={"nodes": (a_beat(state="gone"),)})
    engine, clock = Scripted(AT_WORK, AT_WORK, gone), Clock()
    leave(engine, RUN, lambda line: None, clock.sleep, clock)
    assert engine.did == ["cancel", "tear down"]
    assert clock.now == 4.0
    stuck, clock = Scripted(AT_WORK), Clock()
    leave(stuck, RUN, lambda line: None, clock.sleep, clock)
    assert stuck.did == ["cancel", "tear down"]
    assert 120 <= clock.now < 130, "a node that does not answer is not waited for longer than a spot notice lasts"
    unreachable, clock = Scripted(None), Clock()
    leave(unreachable, RUN, lambda line: None, clock.sleep, clock)
    assert unreachable.did == ["cancel", "tear down"], "a board that is away keeps no machine"


def test_what_is_left_is_said_by_name_with_what_to_do() -> None:
    said: list[str] = []
    end(Scripted(DONE), RUN, said.append)
    assert said == []
    end(Scripted(DONE, left=Remains(instances=("i-9",))), RUN, said.append)
    assert said == [f"{RUN}: STILL THERE, and perhaps paid for: i-9; end it with: nightowl machines reap"]


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (WAITING.model_copy(update={"message": "no spot capacity"}), f"{RUN}: waiting; 0 nodes; no spot capacity"),
        (AT_WORK.model_copy(update={"nodes": (a_beat(state="gone"),)}), f"{RUN}: running; 0 nodes"),
        (RunStatus(run_id=RUN, state="poison", message="train failed 3 times"), f"{RUN}: poison; train failed 3 times"),
    ],
)
def test_a_run_in_one_line(status: RunStatus, line: str) -> None:
    assert describe(status) == line
