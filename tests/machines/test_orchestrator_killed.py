"""The orchestrator is killed, for good or between any two calls to AWS: its machines end by themselves, or the next has them.

It is a process of its own, ended by SIGKILL; the machines are those of the fake EC2, and never boot: only their bill counts.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nightowl.machines.engine import Engine
from nightowl.machines.job import Job
from nightowl.machines.spot_site import RentedMachines
from nightowl.settings import Settings
from tests.fake_ec2.api import Call
from tests.fake_ec2.cloud import FakeEC2
from tests.fake_ec2.world import World, a_world
from tests.machines.jobs import RUN, a_job

NEVER = 3600.0
WRITES = ("Create", "Put", "Update", "Set", "Delete", "Terminate", "Modify", "Run")
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["nightowl.machines.opening"])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with FakeEC2(tmp_path / "cloud", boot_seconds=NEVER) as cloud:
        yield a_world(cloud)


def the_job(**changes: object) -> Job:
    now = datetime.now(UTC)
    return a_job(nodes=2, min_nodes=2, deadline=now + timedelta(hours=1), submitted_at=now, **changes)


def briefly(seconds: float) -> None:
    """The fake forgets nothing for a while, as AWS may: it need not be waited for."""
    time.sleep(min(seconds, 0.1))


def submit(settings: Settings, job: Job, environment: dict[str, str]) -> None:
    """What the orchestrator's process does."""
    os.environ.update(environment)
    RentedMachines(settings).engine().submit(job)


def tear_down(settings: Settings, job: Job, environment: dict[str, str]) -> None:
    os.environ.update(environment)
    RentedMachines(settings, briefly).engine().tear_down(job.run_id)


def killed_at(world: World, number: int, done: bool, what: object, job: Job) -> bool:
    """Run `what` in a process that is killed at its call `number` (from 0) to AWS, before it is carried out or after; returns
    whether there was such a call."""
    process = processes.Process(target=what, args=(world.settings(nodes=2), job, world.cloud.environment()))  # type: ignore[arg-type]
    first, reached = len(world.cloud.calls), False

    def kill(call: Call) -> None:
        nonlocal reached
        if call.number == first + number:
            reached = True
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            if not done:
                raise ConnectionAbortedError("the caller is gone, and what it asked for never arrived")

    hook = "after" if done else "before"
    setattr(world.cloud.api, hook, kill)
    try:
        process.start()
        process.join(180)  # on a machine that is busy it takes its time to import
        assert process.exitcode in (0, -signal.SIGKILL)
    finally:
        setattr(world.cloud.api, hook, lambda call: None)
        process.kill()
        process.join()
    return reached


def engine(world: World) -> Engine:
    return RentedMachines(world.settings(nodes=2), briefly).engine()


def remains(world: World) -> list[str]:
    return world.cloud.tagged("nightowl:run", RUN)


def ends(world: World) -> list[object]:
    return list(world.cloud.client("autoscaling").describe_scheduled_actions()["ScheduledUpdateGroupActions"])


def test_a_run_is_whole_and_its_end_is_scheduled_before_its_first_machine(world: World) -> None:
    with world.cloud.speaking():
        engine(world).submit(the_job())
        world.cloud.wait(lambda: len(world.cloud.alive()) == 2, 10)
        changes = [call.action for call in world.cloud.calls if call.action.startswith(WRITES) and call.service != "iam"]
        assert changes.index("PutScheduledUpdateGroupAction") < changes.index("UpdateAutoScalingGroup")
        assert engine(world).tear_down(RUN).nothing
    assert remains(world) == [] and world.cloud.alive() == []


def test_a_dead_orchestrator_costs_its_lease_and_no_more(world: World) -> None:
    assert not killed_at(world, 10**6, True, submit, the_job())
    world.cloud.wait(lambda: len(world.cloud.alive()) == 2, 10)
    world.cloud.advance(4 * 60)
    assert len(world.cloud.alive()) == 2
    world.cloud.advance(60)
    world.cloud.wait(lambda: not world.cloud.alive(), 10)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("done", [False, True], ids=["asked", "done"])
def test_killed_between_any_two_calls_the_next_one_adopts_and_nothing_is_orphaned(world: World, done: bool) -> None:
    number = 0
    while killed_at(world, number, done, submit, the_job()):
        assert not world.cloud.alive() or ends(world), f"call {number}: machines, and no end of them"
        assert not killed_at(world, 10**6, done, submit, the_job()), "the next orchestrator"
        world.cloud.wait(lambda: len(world.cloud.alive()) == 2, 10)
        assert len(ends(world)) == 1
        groups = world.cloud.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        assert len(groups) == 1
        with world.cloud.speaking():
            assert engine(world).tear_down(RUN).nothing
        assert remains(world) == [] and world.cloud.alive() == [] and ends(world) == []
        number += 1
    assert number >= 6, "a run takes several calls"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_between_any_two_calls_of_tearing_down_the_next_one_ends_the_rest(world: World) -> None:
    number = 0
    while True:
        with world.cloud.speaking():
            engine(world).submit(the_job())
            world.cloud.wait(lambda: len(world.cloud.alive()) == 2, 10)
        if not killed_at(world, number, True, tear_down, the_job()):
            break
        with world.cloud.speaking():
            assert engine(world).tear_down(RUN).nothing
        assert remains(world) == [] and world.cloud.alive() == []
        number += 1
    assert number >= 6
