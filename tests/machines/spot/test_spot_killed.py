"""The orchestrator killed between any two things that it does to AWS or to the board, in every verb; then another comes.

What is left is adopted, with nothing twice, or is gone by the deadline with nobody there; what was torn down half is torn down
whole by the next. All of it is counted by tag, and once in all of the account.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

import pytest

from nightowl.machines.board import Board, board_bucket
from nightowl.machines.reaper import reap
from nightowl.machines.records import RunEnd
from nightowl.machines.spot import SpotEngine
from tests.machines.spot.account import Account, Died, Fuse, FusedAws, job

MINUTES = timedelta(minutes=1)
RUN = "line-00000000000000{:02x}"


class Case(NamedTuple):
    """What was done before, and what is killed; `num_least`: at so many places at least."""

    before: Callable[[Account, SpotEngine, str], None]
    verb: Callable[[Account, SpotEngine, str], None]
    num_least: int


def nothing(account: Account, engine: SpotEngine, run: str) -> None:
    pass


def submit(account: Account, engine: SpotEngine, run: str) -> None:
    engine.submit(job(run, submitted_at=account.now, deadline=account.now + 720 * MINUTES))


def renew(account: Account, engine: SpotEngine, run: str) -> None:
    engine.renew(run)


def tear_down(account: Account, engine: SpotEngine, run: str) -> None:
    engine.tear_down(run)


def submitted(account: Account, engine: SpotEngine, run: str) -> None:
    submit(account, engine, run)
    account.pass_time(15 * MINUTES)


def lapsed(account: Account, engine: SpotEngine, run: str) -> None:
    submit(account, engine, run)
    account.pass_time(45 * MINUTES)


def failed(account: Account, engine: SpotEngine, run: str) -> None:
    """Its machines are still there."""
    submit(account, engine, run)
    board = Board(board_bucket(str(account.boards)), run)
    board.put_end(RunEnd(how="failed", message="", at=account.now))


CASES = {
    "submit": Case(nothing, submit, 7),
    "submit again after it failed": Case(failed, submit, 13),
    "renew": Case(submitted, renew, 4),
    "renew what lapsed": Case(lapsed, renew, 4),
    "tear down": Case(submitted, tear_down, 3),
}


def num_steps(account: Account, case: Case) -> int:
    """How many there are when nobody kills it."""
    run, fuse = RUN.format(0), Fuse()
    case.before(account, account.engine(), run)
    case.verb(account, account.engine(fuse), run)
    account.engine().tear_down(run)
    assert fuse.count >= case.num_least, fuse.seen
    return fuse.count


def killed(account: Account, case: Case, at: int) -> str:
    account.wipe()
    run, fuse = RUN.format(at), Fuse(at)
    case.before(account, account.engine(), run)
    with pytest.raises(Died):
        case.verb(account, account.engine(fuse), run)
    return run


@pytest.mark.parametrize("name", [name for name in CASES if name != "tear down"])
def test_whoever_comes_next_adopts_it_with_nothing_twice(account: Account, name: str) -> None:
    for at in range(1, num_steps(account, CASES[name]) + 1):
        run = killed(account, CASES[name], at)
        submit(account, account.engine(), run)
        found = (len(account.instances(run)), len(account.instances()), len(account.groups()), len(account.templates()))
        assert found == (1, 1, 1, 1), f"killed before step {at}"
        assert account.scheduled()[-1]["StartTime"] > account.now, f"killed before step {at}"


@pytest.mark.parametrize("name", ["submit", "tear down"])
def test_whoever_comes_next_tears_it_down(account: Account, name: str) -> None:
    for at in range(1, num_steps(account, CASES[name]) + 1):
        run = killed(account, CASES[name], at)
        assert account.engine().tear_down(run).nothing
        assert account.empty(), f"killed before step {at}"


@pytest.mark.parametrize("name", CASES)
def test_with_nobody_coming_no_machine_outlives_the_lease_and_the_reaper_leaves_nothing(account: Account, name: str) -> None:
    for at in range(1, num_steps(account, CASES[name]) + 1):
        killed(account, CASES[name], at)
        account.pass_time(31 * MINUTES)
        assert account.instances() == [], f"killed before step {at}"
        account.pass_time(720 * MINUTES)
        assert reap(FusedAws(Fuse()), account.now, lambda seconds: None).clean
        assert account.empty(), f"killed before step {at}"


KILL_FOR_REAL = """
import os, sys
from pathlib import Path
import tests.machines.spot.account as at
from nightowl.machine_settings import MachineSettings
account = at.Account(MachineSettings.model_validate_json(sys.argv[1]), Path(sys.argv[2]))
account.engine(at.Fuse(int(sys.argv[3]), die=lambda: os._exit(9))).submit(at.job())
"""


@pytest.mark.parametrize("at", [3, 4, 7])
def test_a_process_that_is_killed_for_real_is_followed_by_another(account: Account, served: str, at: int) -> None:
    """The same with AWS in a server and the orchestrator in a process of its own."""
    arguments = [account.settings.model_dump_json(), str(account.boards), str(at)]
    environment = {**os.environ, "AWS_ENDPOINT_URL": served, "PYTHONPATH": os.getcwd()}
    ended = subprocess.run([sys.executable, "-c", KILL_FOR_REAL, *arguments], env=environment, timeout=120)
    assert ended.returncode == 9
    assert (len(account.templates()), len(account.groups()), len(account.instances())) == (at > 3, at > 4, 0)
    account.engine().submit(job())
    assert (len(account.templates()), len(account.groups()), len(account.instances())) == (1, 1, 1)
    assert account.engine().tear_down(job().run_id).nothing
    assert account.empty()
