"""Whole runs of several nodes over one board, with a clock that the test moves and work that ends when the test says so."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from nightowl.cloud.bucket import FolderBucket
from nightowl.errors import RemoteError
from nightowl.machines.board import Board
from nightowl.machines.diary import Diary
from nightowl.machines.job import Job
from nightowl.machines.node import Node
from nightowl.machines.outlook import Clock
from nightowl.machines.records import Cancel, Generation, HowRunEnded, NodeBeat
from nightowl.machines.worker import Ended
from nightowl.training.steps_taken import Steps
from tests.machines.jobs import NOW, RUN, a_beat, a_job


@dataclass
class Time:
    at: float = 0.0

    def clock(self) -> Clock:
        return Clock(lambda: NOW + timedelta(seconds=self.at), lambda: self.at)


@dataclass
class Hands:
    """A worker whose work the test ends."""

    now: Steps | None = None
    saved: int | None = None
    begun: list[tuple[str, int, int]] = field(default_factory=list)
    stops: list[float] = field(default_factory=list)
    requests: int = 0
    how: Ended | None = None

    def begin(self, stage: str, generation: Generation, rank: int) -> None:
        self.begun.append((stage, generation.number, rank))
        self.how = self.now = None

    def ended(self) -> Ended | None:
        return self.how

    def stop(self, patience_seconds: float) -> None:
        self.stops.append(patience_seconds)

    def request_checkpoint(self) -> None:
        self.requests += 1

    def steps(self) -> Steps | None:
        return self.now

    def committed(self) -> int | None:
        return self.saved

    def end(self, how: str = "done", message: str = "") -> None:
        self.how = Ended(how, message, True)  # type: ignore[arg-type]


@dataclass
class Ears:
    notice: str | None = None
    recommended: str | None = None

    def look(self) -> str | None:
        return self.notice

    def rebalance(self) -> str | None:
        return self.recommended


@dataclass
class Machine:
    node: Node
    hands: Hands
    ears: Ears
    left: list[bool]
    diary: Diary
    is_dead: bool = False


class World:
    """Machines by name; `step` lets each beat and look, one after the other."""

    def __init__(self, folder: Path, job: Job) -> None:
        self.board, self.job, self.time = Board(FolderBucket(folder), RUN), job, Time()
        self.machines: dict[str, Machine] = {}

    def boot(self, name: str) -> Machine:
        hands, ears, left = Hands(), Ears(), list[bool]()
        clock = self.time.clock()
        diary = Diary(self.board, name, clock.now)
        node = Node(self.job, self.board, a_beat(name), hands, ears, diary, left.append, clock)
        self.machines[name] = Machine(node, hands, ears, left, diary)
        return self.machines[name]

    def step(self, times: int = 1, seconds: float = 10) -> None:
        for _ in range(times):
            self.time.at += seconds
            for machine in self.machines.values():
                if not machine.is_dead and not machine.left:
                    machine.node.beat()
                    machine.node.tick()
                    machine.diary.flush()

    def until(self, holds: Callable[[], bool], limit: int = 100) -> None:
        for _ in range(limit):
            if holds():
                return
            self.step()
        pytest.fail(f"not within {limit} steps: {[each.hands.begun for each in self.machines.values()]}")

    def how(self) -> HowRunEnded | None:
        end = self.board.end()
        return end.how if end else None

    def generations(self) -> list[str]:
        return [end.how for end in self.board.generation_ends()]


@pytest.fixture
def pair(tmp_path: Path) -> World:
    """Two nodes that have prepared, and train as generation 1."""
    world = World(tmp_path, a_job(nodes=2, min_nodes=2))
    a, b = world.boot("a"), world.boot("b")
    world.until(lambda: bool(a.hands.begun))
    a.hands.end()
    world.until(lambda: len(a.hands.begun) == 2 and bool(b.hands.begun))
    return world


def test_one_node_runs_the_stages_in_order_and_leaves_for_good(tmp_path: Path) -> None:
    world = World(tmp_path, a_job(stages=("prepare", "train", "evaluate")))
    machine = world.boot("a")
    for number in (1, 2, 3):
        world.until(lambda number=number: len(machine.hands.begun) == number)  # type: ignore[misc]
        machine.hands.end()
    world.until(lambda: bool(machine.left))
    assert [stage for stage, _, _ in machine.hands.begun] == ["prepare", "train", "evaluate"]
    assert machine.left == [True] and world.how() == "done"
    assert [end.stage for end in world.board.stage_ends()] == ["prepare", "train", "evaluate"]
    assert [beat.state for beat in world.board.beats()] == ["gone"]
    assert {"left", "waiting", "stage"} <= {event.kind for event in world.board.events()}


def test_rank_0_prepares_and_both_train(pair: World) -> None:
    a, b = pair.machines["a"].hands, pair.machines["b"].hands
    assert a.begun == [("prepare", 1, 0), ("train", 1, 0)] and b.begun == [("train", 1, 1)]
    a.end()
    b.end()
    pair.until(lambda: pair.how() is not None)
    pair.step(3)
    assert pair.how() == "done" and [machine.left for machine in pair.machines.values()] == [[True], [True]]


def test_a_notice_lets_all_save_and_the_replacement_joins(pair: World, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = pair.machines["a"], pair.machines["b"]
    states: list[str] = []
    put_beat = pair.board.put_beat

    def noted(beat: NodeBeat) -> None:
        states.append(f"{beat.instance} {beat.state}")
        put_beat(beat)

    monkeypatch.setattr(pair.board, "put_beat", noted)
    a.hands.now, a.hands.saved = Steps(0, 40), 40
    pair.step()
    b.ears.notice = "taken back in 120 s"
    pair.until(lambda: bool(a.hands.stops) and bool(b.hands.stops))
    assert min(a.hands.stops + b.hands.stops) >= 100, "time to save"
    pair.step(2)
    assert b.left == [], "it goes when its work has ended"
    a.hands.end("preempted")
    b.hands.end("preempted")
    pair.until(lambda: bool(b.left))
    assert b.left == [False], "so that the group sends another"
    assert "b ready" not in states, "or a generation might count on it"
    c = pair.boot("c")
    pair.until(lambda: bool(c.hands.begun))
    pair.step()
    assert a.hands.begun[-1] == ("train", 2, 0) and c.hands.begun == [("train", 2, 1)]
    assert pair.generations() == ["preempted"]
    a.hands.now = Steps(40, 41)
    pair.step()
    a.hands.end()
    pair.until(lambda: pair.how() == "done")
    trained = [event for event in pair.board.events() if event.kind == "steps" and event.instance == "a"]
    assert [(event.steps, event.redone) for event in trained] == [(40, 0), (1, 0)]


def test_nobody_begins_anew_while_another_still_saves(pair: World) -> None:
    a, b = pair.machines["a"], pair.machines["b"]
    b.ears.notice = "taken back"
    pair.boot("c")
    pair.until(lambda: bool(b.hands.stops))
    a.hands.end("preempted")
    pair.step(5)
    assert len(a.hands.begun) == 2
    b.hands.end("preempted")
    pair.until(lambda: len(a.hands.begun) == 3)


def test_a_node_that_vanishes_is_missed_within_a_minute_and_what_is_done_again_is_counted(pair: World) -> None:
    a, b = pair.machines["a"], pair.machines["b"]
    a.hands.now, a.hands.saved = Steps(0, 53), 40
    pair.step()
    b.is_dead, died = True, pair.time.at
    pair.until(lambda: bool(a.hands.stops))
    assert pair.time.at - died <= 90
    assert max(a.hands.stops) < 20, "its ranks wait for one that is gone: there is nothing to save"
    a.hands.end("failed", "connection closed by peer")
    c = pair.boot("c")
    pair.until(lambda: bool(c.hands.begun))
    pair.step()
    a.hands.now = Steps(40, 100)
    pair.step()
    a.hands.end()
    pair.until(lambda: pair.how() == "done")
    trained = [event for event in pair.board.events() if event.kind == "steps" and event.instance == "a"]
    assert [event.redone for event in trained] == [0, 13]
    assert pair.generations() == ["member_lost"] and [each.preempted for each in pair.board.failures("train")] == [True]


def test_rank_0_killed_is_a_generation_lost_and_another_leads(pair: World) -> None:
    a, b = pair.machines["a"], pair.machines["b"]
    a.is_dead = True
    b.hands.end("failed", "no connection to rank 0")
    c = pair.boot("c")
    pair.until(lambda: bool(c.hands.begun))
    pair.step()
    assert b.hands.begun[-1] == ("train", 2, 0) and c.hands.begun == [("train", 2, 1)]
    assert pair.generations() == ["member_lost"], "the failure was not believed to be one"


def test_all_nodes_lost_and_two_new_ones_go_on(pair: World) -> None:
    for machine in pair.machines.values():
        machine.is_dead = True
    c, d = pair.boot("c"), pair.boot("d")
    pair.until(lambda: bool(c.hands.begun) and bool(d.hands.begun))
    assert c.hands.begun == [("train", 2, 0)], "prepare is done, and stays so"


def test_with_fewer_nodes_where_that_is_allowed_and_with_more_when_they_come(tmp_path: Path) -> None:
    world = World(tmp_path, a_job(nodes=2, min_nodes=1, stages=("train",)))
    a = world.boot("a")
    world.until(lambda: bool(a.hands.begun))
    assert 90 <= world.time.at <= 130
    b = world.boot("b")
    world.until(lambda: bool(a.hands.stops))
    a.hands.end("preempted")
    world.until(lambda: bool(b.hands.begun) and len(a.hands.begun) == 2)
    assert a.hands.begun[-1] == ("train", 2, 0) and b.hands.begun == [("train", 2, 1)]


def test_the_same_step_failing_three_times_is_poison(tmp_path: Path) -> None:
    world = World(tmp_path, a_job(stages=("train",)))
    machine = world.boot("a")
    for number in (1, 2, 3):
        world.until(lambda number=number: len(machine.hands.begun) == number)  # type: ignore[misc]
        machine.hands.now, machine.hands.saved = Steps(5, 7), 5
        world.step()
        machine.hands.end("failed", "the loss was no number")
    world.until(lambda: bool(machine.left))
    end = world.board.end()
    assert end is not None and end.how == "poison" and "after step 5, the last time with: the loss was no number" in end.message
    assert machine.left == [True] and len(machine.hands.begun) == 3


def test_a_training_without_a_committed_step_ends_the_run(tmp_path: Path) -> None:
    world = World(tmp_path, a_job(stages=("train",), stall_minutes=5))
    machine = world.boot("a")
    machine.hands.saved = 1
    world.until(lambda: bool(machine.hands.begun))
    for saved in range(2, 30):
        machine.hands.saved = saved
        world.step(10)
        assert not machine.hands.stops, "as long as it goes forward"
    world.until(lambda: bool(machine.hands.stops), limit=60)
    assert world.how() == "failed"
    machine.hands.end("preempted")
    world.until(lambda: machine.left == [True])


def test_a_long_stage_without_steps_is_no_stall(tmp_path: Path) -> None:
    world = World(tmp_path, a_job(stages=("evaluate",), stall_minutes=5))
    machine = world.boot("a")
    world.step(100)
    assert machine.hands.begun and not machine.hands.stops


@pytest.mark.parametrize("why", ["cancelled", "deadline"])
def test_a_wish_or_a_time_ends_the_run_and_lets_it_save(tmp_path: Path, why: str) -> None:
    world = World(tmp_path, a_job(stages=("train",), deadline=NOW + timedelta(minutes=20)))
    machine = world.boot("a")
    world.until(lambda: bool(machine.hands.begun))
    if why == "cancelled":
        world.board.put_cancel(Cancel(by="me", at=NOW))
    machine.hands.saved = 1
    world.until(lambda: bool(machine.hands.stops), limit=130)
    assert machine.hands.stops[0] >= 100
    machine.hands.end("preempted")
    world.until(lambda: machine.left == [True])
    assert world.how() == why


def test_a_recommendation_to_leave_asks_for_one_checkpoint_and_nothing_else(pair: World) -> None:
    b = pair.machines["b"]
    b.ears.recommended = "2026-07-01T02:00:00Z"
    pair.step(5)
    assert b.hands.requests == 1 and not b.hands.stops and pair.generations() == []


def test_a_node_that_does_not_reach_the_board_ends_its_work_and_leaves(pair: World, monkeypatch: pytest.MonkeyPatch) -> None:
    b = pair.machines["b"]

    def cut() -> object:
        raise RemoteError("no route to host")

    own = Board(pair.board.bucket, RUN)
    own.bucket = pair.board.bucket
    b.node._outlook._board = own
    monkeypatch.setattr(own, "stage_ends", cut)
    monkeypatch.setattr(b.node, "beat", lambda: None)
    pair.until(lambda: bool(b.hands.stops))
    b.hands.end("failed", "no peer")
    asked = list[object]()
    monkeypatch.setattr(own, "stage_ends", lambda: asked.append(1) or cut())
    pair.until(lambda: bool(b.left))
    assert b.left == [False] and not asked, "each word to the board would be waited for for minutes, and the machine paid for"
    pair.until(lambda: pair.generations() == ["member_lost"])
