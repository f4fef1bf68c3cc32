"""One stage of the pipeline, by its name. DVC decides whether it executes or is restored; this restates nothing of it."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from nightowl.errors import Interrupted, NightowlError, Preempted, StageFailed, UserError
from nightowl.night.record import Night, StageRun, add_run, workspace_in_tree
from nightowl.processes import ask_for_signal_when_parent_ends, lines, wait
from nightowl.settings import as_environment
from nightowl.stages.frame import StageOutcome
from nightowl.stages.workspace import Workspace
from tasks.say import orchestrated, say

COMMIT_SECONDS = 100  # how long a stopping stage may take to save what it has
DVC_SECONDS = 10


@task(name="stage", task_run_name="{stage}", cache_policy=NO_CACHE)
def run_stage(night: Night, stage: str) -> None:
    """Bring the outputs of `stage` about in the night's tree, and push them when there is a remote.

    Raises:
        StageFailed: with the stage's own message.
        UserError: when that message is about something the user gave.
        Interrupted: when it was stopped and will go on next time.
    """
    workspace = workspace_in_tree(night)
    workspace.outcome(stage).unlink(missing_ok=True)
    workspace.leader(stage).unlink(missing_ok=True)
    name = f"{stage}@{night.detector}"
    started = time.monotonic()
    code = _dvc(workspace, stage, ["repro", "--quiet", *(["--pull"] if night.shares else []), name])
    outcome = read_outcome(workspace.outcome(stage))
    if code != 0 or (outcome is not None and outcome.status != "done"):
        raise _failure(workspace, stage, code, outcome)
    if night.shares:
        _push(workspace, name)
    run = StageRun(stage=stage, executed=outcome is not None, seconds=time.monotonic() - started)
    add_run(night, run)
    say(f"{name}: {'done' if run.executed else 'restored from the cache'} in {run.seconds:.0f} s")


def read_outcome(path: Path) -> StageOutcome | None:
    """The outcome of an execution, or None when DVC restored the stage and so nothing executed."""
    return StageOutcome.model_validate_json(path.read_bytes()) if path.exists() else None


def _failure(workspace: Workspace, stage: str, code: int, outcome: StageOutcome | None) -> NightowlError:
    name = f"{stage}@{workspace.detector}"
    if outcome is None and workspace.leader(stage).exists():
        return Interrupted(
            f"{name} was killed, perhaps for lack of memory (see `journalctl -k`); run the same command again and it goes on"
        )
    if outcome is None:
        command = [sys.executable, "-m", "dvc", "repro", "--dry", name]
        environment = _environment(workspace, "none")
        done = subprocess.run(command, cwd=workspace.root, env=environment, capture_output=True, text=True, check=False)
        detail = " ".join(done.stderr.split()) or f"dvc ended with {code}; in the checkout, `dvc repro -v {name}` tells more"
        return StageFailed(f"{name} did not begin: {detail}")
    kinds: dict[int, type[NightowlError]] = {2: UserError, 75: Preempted, 130: Interrupted}
    return kinds.get(outcome.exit_code, StageFailed)(outcome.message)


def _push(workspace: Workspace, name: str) -> None:
    """Failing to share is no reason to lose the night: it is said, and the next night pushes again."""
    if _dvc(workspace, name.partition("@")[0], ["push", "--quiet", "--run-cache", name]) != 0:
        say(f"{name}: its outputs could not be pushed to the DVC remote; they are in the local cache")


def _dvc(workspace: Workspace, stage: str, arguments: list[str]) -> int:
    """Run DVC in a session of its own, so that a Ctrl-C reaches us first and training can commit. Returns its exit code."""
    orchestrator = orchestrated()
    process = subprocess.Popen(
        [sys.executable, "-m", "dvc", *arguments],
        cwd=workspace.root,
        env=_environment(workspace, stage),
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if orchestrator else None,
        stderr=subprocess.STDOUT if orchestrator else None,
        preexec_fn=partial(ask_for_signal_when_parent_ends, signal.SIGTERM),  # noqa: PLW1509
    )
    try:
        for line in lines(process) if orchestrator else ():
            say(line)
        return wait(process)
    except BaseException:
        stop(process, workspace.leader(stage))
        raise


def stop(process: "subprocess.Popen[bytes]", leader: Path) -> None:
    """Ask the stage's leader to stop, wait for its commit, then let DVC end. A signal to the group would end DVC at once and
    leave a training that still saves."""
    leading = _leader_pid(leader)
    if leading is not None:
        _signal(leading, signal.SIGTERM)
        deadline = time.monotonic() + COMMIT_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
    for last in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, last)
            try:
                process.wait(DVC_SECONDS)
            except subprocess.TimeoutExpired:
                continue


def _leader_pid(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _environment(workspace: Workspace, stage: str) -> dict[str, str]:
    """The stage sees the settings of the checkout that the night came from, and the interpreter that runs us."""
    executables = str(Path(sys.executable).parent)
    return {
        **os.environ,
        **as_environment(workspace.settings),
        "PATH": os.pathsep.join([executables, os.environ.get("PATH", "")]),
        "PYTHONUNBUFFERED": "1",
        "DVC_NO_ANALYTICS": "1",
        "NIGHTOWL_STAGE": stage,
    }
