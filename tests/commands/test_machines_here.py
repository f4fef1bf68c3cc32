"""`nightowl machines list` and `cancel` for runs of this machine, without any account."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from nightowl.cli import app
from nightowl.machines import follow
from nightowl.machines.here import ThisMachine
from nightowl.machines.local import LocalEngine
from nightowl.machines.records import RunEnd
from nightowl.settings import Settings
from tests.machines.jobs import NOW, RUN, a_job


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalEngine:
    settings = Settings(home=tmp_path, engine="detached")
    monkeypatch.setattr("nightowl.commands.place.settings_here", lambda: settings)
    return ThisMachine(settings).engine()


def said(*words: str) -> str:
    done = CliRunner().invoke(app, ["machines", *words], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_runs_of_this_machine_are_listed_without_an_account(engine: LocalEngine) -> None:
    assert said("list") == "no runs on this machine\n"
    engine.board(RUN).put_job(a_job(deadline=NOW.replace(year=2100)))
    assert said("list") == f"{RUN}: waiting; 0 nodes\n"
    engine.board(RUN).put_end(RunEnd(how="done", message="", at=NOW))
    assert said("list") == f"{RUN}: done\n"


def test_a_run_is_cancelled_by_its_id_once(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "_LEAVE_SECONDS", 0)
    engine.board(RUN).put_job(a_job(deadline=NOW.replace(year=2100)))
    assert said("cancel", RUN) == f"{RUN}: cancelled; its nodes save what they have\n"
    assert engine.board(RUN).cancelled() is not None and engine.status(RUN).state == "cancelled"
    assert said("cancel", RUN) == f"{RUN} is over already: cancelled\n"
