import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nightowl.errors import Interrupted, NightowlError, Preempted, StageFailed, UserError
from nightowl.files import write_atomic, write_record
from nightowl.processes import ALREADY
from nightowl.settings import Settings
from nightowl.stages import repro
from nightowl.stages.frame import StageOutcome
from nightowl.stages.workspace import Workspace

# Stands in for DVC: it leaves its process id as the stage does, and commits when it is asked to stop.
COMMITS = """
import os, pathlib, signal, sys, time
def commit(*_):
    time.sleep(0.6 if "slowly" in sys.argv[1] else 0)
    pathlib.Path("committed").write_text("yes")
    sys.exit(0)
signal.signal(signal.SIGTERM, commit if "commits" in sys.argv[1] else lambda *_: None)
pathlib.Path("leader.new").write_text(str(os.getpid()))
os.rename("leader.new", "leader")
time.sleep(60)
"""


def begun(folder: Path, how: str) -> "subprocess.Popen[bytes]":
    workspace = Workspace(folder, "demo", Settings(home=folder))
    process = repro.start(workspace, "train", ["-c", COMMITS, how], piped=False)
    while not (folder / "leader").exists():
        assert process.poll() is None
        time.sleep(0.02)
    return process


def test_a_stage_that_is_asked_to_stop_may_commit(tmp_path: Path) -> None:
    process = begun(tmp_path, "commits")
    repro.stop(process, tmp_path / "leader")
    assert process.returncode == 0 and (tmp_path / "committed").exists()


def test_an_impatient_ctrl_c_meanwhile_loses_no_commit(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    process = begun(tmp_path, "commits slowly")
    impatience = threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    impatience.start()
    repro.stop(process, tmp_path / "leader")
    assert process.returncode == 0 and (tmp_path / "committed").exists()
    assert capfd.readouterr().err == ALREADY + "\n"


def test_one_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repro, "DVC_SECONDS", 0.2)
    process = begun(tmp_path, "does not")
    repro.stop(process, tmp_path / "leader", commit_seconds=0.2)
    assert process.returncode == -9 and not (tmp_path / "committed").exists()


@pytest.mark.parametrize(
    ("code", "outcome", "kind"),
    [
        (0, None, None),
        (0, StageOutcome(status="done", exit_code=0, message=""), None),
        (255, StageOutcome(status="failed", exit_code=2, message="no images"), UserError),
        (255, StageOutcome(status="failed", exit_code=1, message="loss"), StageFailed),
        (255, StageOutcome(status="preempted", exit_code=75, message="taken back"), Preempted),
    ],
    ids=["restored", "done", "the user's", "failed", "preempted"],
)
def test_how_a_stage_ended_is_an_error_of_its_kind(
    tmp_path: Path, code: int, outcome: StageOutcome | None, kind: type[NightowlError] | None
) -> None:
    workspace = Workspace(tmp_path, "demo", Settings(home=tmp_path))
    if outcome is not None:
        write_record(workspace.outcome("train"), outcome)
    found = repro.failure(workspace, "train", code)
    assert (type(found) if found else None) is kind
    if found:
        assert outcome is not None and str(found) == outcome.message


def test_a_stage_that_left_its_process_id_was_killed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, "demo", Settings(home=tmp_path))
    write_atomic(workspace.leader("train"), "1")
    found = repro.failure(workspace, "train", 255)
    assert type(found) is Interrupted and "train@demo was killed" in str(found)
    repro.forget(workspace, "train")
    assert not workspace.leader("train").exists()
    assert repro.ask_to_stop(workspace.leader("train")) is False


def test_what_did_not_begin_says_why(tmp_path: Path) -> None:
    found = repro.failure(Workspace(tmp_path, "demo", Settings(home=tmp_path)), "train", 255)
    assert type(found) is StageFailed and "train@demo did not begin: " in str(found)
    assert sys.executable not in str(found)
