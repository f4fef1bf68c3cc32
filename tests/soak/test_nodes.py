"""Runs of several nodes on this machine: taken back, killed, cut off, they end with the weights of the undisturbed run."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightowl.settings import Settings
from tests.soak.runs import LocalRun

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes by /proc"),
]
TOTAL = 16  # steps: 4 epochs of 4


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the weights that two nodes come to, with nothing in their way."""
    run = LocalRun(tmp_path_factory.mktemp("undisturbed"), nodes=2)
    run.submit()
    digest = run.done()
    assert [number.how for number in run.board.generation_ends()] == []
    assert run.steps() == [(TOTAL, 0)]
    assert [end.stage for end in run.board.stage_ends()] == ["prepare", "train"]
    return digest


@pytest.fixture
def run(tmp_path: Path) -> Iterator[LocalRun]:
    run = LocalRun(tmp_path, nodes=2)
    run.submit()
    yield run
    run.engine.tear_down(run.id, 0)


def test_one_node_alone_runs_the_stages_and_another_machine_restores_them(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, nodes=1)
    run.submit()
    assert run.done()
    assert list((tmp_path / "remote" / "runs").rglob("*")), "the run cache is what another machine restores from"


@pytest.mark.parametrize("rank", [1, 0])
def test_taken_back_after_a_notice_no_step_is_done_again(run: LocalRun, undisturbed: str, rank: int) -> None:
    run.until("a step", lambda: run.trains_after(2))
    run.take_back(run.number_of(rank))
    assert run.done() == undisturbed
    assert [end.how for end in run.board.generation_ends()] == ["preempted"]
    steps = run.steps()
    assert sum(taken for taken, _ in steps) == TOTAL and all(redone == 0 for _, redone in steps)


@pytest.mark.parametrize("rank", [1, 0])
def test_one_that_vanishes_costs_what_was_not_saved_and_changes_nothing(run: LocalRun, undisturbed: str, rank: int) -> None:
    run.until("a step", lambda: run.trains_after(2))
    run.vanish(run.number_of(rank))
    assert run.done() == undisturbed
    assert [end.how for end in run.board.generation_ends()] == ["member_lost"]


def test_all_that_vanish_are_replaced_and_change_nothing(run: LocalRun, undisturbed: str) -> None:
    run.until("a step", lambda: run.trains_after(2))
    run.vanish(0, 1)
    assert run.done() == undisturbed


def test_one_that_falls_silent_is_missed_long_before_a_collective_gives_up(run: LocalRun, undisturbed: str) -> None:
    run.until("a step", lambda: run.trains_after(2))
    frozen, at = run.freeze(run.number_of(1)), time.monotonic()
    run.until("its loss to be said", lambda: bool(run.board.generation_ends()))
    assert time.monotonic() - at < 120 < run_timeout_seconds()
    for pid in frozen:
        os.kill(pid, signal.SIGKILL)
    assert run.done() == undisturbed
    assert [end.how for end in run.board.generation_ends()] == ["member_lost"]


def test_a_stage_that_cannot_run_is_tried_three_times_and_says_why(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, nodes=1)
    run.submit(NIGHTOWL_DEVICE="7")
    run.until("the end", lambda: run.board.end() is not None)
    end = run.board.end()
    assert end is not None and end.how == "poison" and "device: 7: expected one of the" in end.message
    assert len(run.board.failures("train")) == 3
    assert [end.stage for end in run.board.stage_ends()] == ["prepare"], "what was made stays"
    run.until("its nodes to leave", lambda: run.engine.tear_down(run.id).nothing, renewing=False)


def run_timeout_seconds() -> float:
    return float(Settings.model_fields["rank_timeout_seconds"].default)
