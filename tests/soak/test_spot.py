"""Spot machines of the fake EC2, taken back, killed, cut off: a run ends with the weights of the undisturbed one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nightowl.machines.board import Board
from tests.fake_ec2.cloud import FakeEC2
from tests.fake_ec2.namespaces import namespaces_permitted
from tests.fake_ec2.world import a_world
from tests.soak.spot import SpotRun

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
TOTAL = 16  # steps: 4 epochs of 4


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the weights that two machines come to, with nothing in their way."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with FakeEC2(folder / "cloud") as cloud, cloud.speaking():
        run = SpotRun(a_world(cloud), folder)
        run.submit()
        digest = run.done()
        assert run.told() == [(TOTAL, 0)]
        return digest


@pytest.fixture
def run(tmp_path: Path) -> Iterator[SpotRun]:
    """Two machines, asked for."""
    with FakeEC2(tmp_path / "cloud") as cloud, cloud.speaking():
        run = SpotRun(a_world(cloud), tmp_path)
        run.submit()
        yield run


def test_after_a_notice_the_replacement_joins_and_no_step_is_done_again(run: SpotRun, undisturbed: str) -> None:
    run.until("a step", lambda: run.trains_after(2))
    taken = run.instance_of(rank=1)
    run.cloud.interrupt(taken, seconds=120)
    run.until("it to leave, well before its time", lambda: taken in run.cloud.ended, driven=False)
    assert run.done() == undisturbed
    account = run.account().goodput
    assert (account.steps, account.steps_redone, account.notices, account.restarts) == (TOTAL, 0, 1, 1)
    assert account.num_machines == 3


@pytest.mark.parametrize("rank", [1, 0])
def test_killed_without_notice_costs_at_most_what_was_not_saved(run: SpotRun, undisturbed: str, rank: int) -> None:
    """Rank 0 is where the others meet, and who commits; a new generation meets elsewhere."""
    run.until("a step", lambda: run.trains_after(2))
    victim = run.instance_of(rank)
    leader = run.beat(run.instance_of(rank=0))
    run.cloud.kill(victim)
    assert run.done() == undisturbed
    ends = run.board.generation_ends()
    assert [end.how for end in ends] == ["member_lost"]
    assert leader is not None and leader.taken is not None
    redone = sum(redone for _, redone in run.told())
    assert redone <= leader.taken - (leader.step or 0) + 2, "a checkpoint a second: what was taken since the last, and two more"


def test_all_machines_lost_at_once_are_replaced_and_change_nothing(run: SpotRun, undisturbed: str) -> None:
    run.until("a step", lambda: run.trains_after(2))
    for name in run.cloud.alive():
        run.cloud.kill(name)
    assert run.done() == undisturbed
    assert run.account().goodput.num_machines == 4


@pytest.mark.skipif(not namespaces_permitted(), reason="no network namespaces here: links cannot be cut")
def test_a_machine_that_is_cut_off_is_given_up_and_leaves_by_itself(run: SpotRun, undisturbed: str) -> None:
    run.until("a step", lambda: run.trains_after(2))
    lonely = run.instance_of(rank=1)
    run.cloud.cut(lonely)
    run.until("it to shut itself down", lambda: lonely in run.cloud.ended)
    assert run.done() == undisturbed
    assert "member_lost" in [end.how for end in run.board.generation_ends()]


def test_a_machine_that_boots_after_the_end_leaves_at_once(tmp_path: Path) -> None:
    with FakeEC2(tmp_path / "cloud") as cloud, cloud.speaking():
        run = SpotRun(a_world(cloud), tmp_path, nodes=1)
        run.submit()
        run.until("the end", lambda: run.board.end() is not None)
        cloud.wait(lambda: not cloud.alive(), 60, "for the node to leave")
        before = len(run.board.beats())
        group = {"AutoScalingGroupName": f"nightowl-{run.id}"}
        cloud.client("autoscaling").update_auto_scaling_group(**group, MinSize=0, MaxSize=1, DesiredCapacity=1)
        cloud.wait(lambda: len(cloud.alive()) == 1, 30)
        (late,) = cloud.alive()
        cloud.wait(lambda: late in cloud.ended and not cloud.alive(), 60, "for the late one to leave")
        assert f"{run.id} is over" in cloud.ended[late].console
        assert len(run.board.beats()) == before, "it never became a node"
        assert run.engine.tear_down(run.id).nothing


def test_the_next_orchestrator_finds_a_run_at_work_and_goes_on_with_it(run: SpotRun, undisturbed: str) -> None:
    """Nobody drives it for a while; then another one asks for the same."""
    run.until("a step", lambda: run.trains_after(2))
    before = set(run.cloud.alive())
    other = SpotRun(run.world, run._folder)
    assert other.id == run.id
    other.submit()
    assert set(run.cloud.alive()) == before
    assert other.done() == undisturbed
    assert isinstance(other.board, Board) and other.board.generation_ends() == []
