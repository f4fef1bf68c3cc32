"""A stage brought about by `dvc repro`, as a process: begun, asked to stop, and how it ended.

It runs in a session of its own, so that a Ctrl-C reaches whoever started it first and a training can commit.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from nightowl.errors import Interrupted, NightowlError, Preempted, StageFailed, UserError
from nightowl.processes import ask_for_signal_when_parent_ends, impatience_answered
from nightowl.settings import as_environment
from nightowl.stages.frame import StageOutcome
from nightowl.stages.workspace import Workspace

COMMIT_SECONDS = 100.0  # how long a stopping stage may take to save what it has
DVC_SECONDS = 10
RESTORING = "restoring"  # the name of no stage: what would execute under it refuses


def forget(workspace: Workspace, stage: str) -> None:
    """Forget how `stage` ended before, so that what is found afterwards is of this time."""
    workspace.outcome(stage).unlink(missing_ok=True)
    workspace.leader(stage).unlink(missing_ok=True)


def repro(workspace: Workspace, stage: str, pull: bool, piped: bool, only_restore: bool = False) -> "subprocess.Popen[bytes]":
    """Have DVC bring about the outputs of `stage`; `pull`: from the remote where it has them. `piped`: for us to read. With
    `only_restore`, a stage that would execute all the same refuses to."""
    name = f"{stage}@{workspace.detector}"
    arguments = ["-m", "dvc", "repro", "--quiet", *(["--pull"] if pull else []), name]
    return start(workspace, RESTORING if only_restore else stage, arguments, piped)


def push(workspace: Workspace, stage: str, piped: bool) -> "subprocess.Popen[bytes]":
    """Have DVC bring the outputs of `stage`, and that it made them, to the remote."""
    name = f"{stage}@{workspace.detector}"
    return start(workspace, stage, ["-m", "dvc", "push", "--quiet", "--run-cache", name], piped)


def start(workspace: Workspace, stage: str, arguments: list[str], piped: bool) -> "subprocess.Popen[bytes]":
    """Run Python with `arguments` for `stage`; it ends with us."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=workspace.root,
        env=_environment(workspace, stage),
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if piped else None,
        stderr=subprocess.STDOUT if piped else None,
        preexec_fn=partial(ask_for_signal_when_parent_ends, signal.SIGTERM),  # noqa: PLW1509
    )


def read_outcome(path: Path) -> StageOutcome | None:
    """The outcome of an execution, or None when DVC restored the stage and so nothing executed."""
    return StageOutcome.model_validate_json(path.read_bytes()) if path.exists() else None


def failure(workspace: Workspace, stage: str, code: int) -> NightowlError | None:
    """The error that `stage` ended with, DVC having ended with `code`; None when it is well."""
    outcome = read_outcome(workspace.outcome(stage))
    if code == 0 and (outcome is None or outcome.status == "done"):
        return None
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


def stop(process: "subprocess.Popen[bytes]", leader: Path, commit_seconds: float = COMMIT_SECONDS) -> None:
    """Ask the stage's leader to stop, wait for its commit, then let DVC end. A signal to the group would end DVC at once and
    leave a training that still saves. A Ctrl-C meanwhile is answered, and changes nothing."""
    with impatience_answered():
        _stop(process, leader, commit_seconds)


def _stop(process: "subprocess.Popen[bytes]", leader: Path, commit_seconds: float) -> None:
    if ask_to_stop(leader):
        deadline = time.monotonic() + commit_seconds
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
    for last in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, last)
            try:
                process.wait(DVC_SECONDS)
            except subprocess.TimeoutExpired:
                continue


def ask_to_stop(leader: Path) -> bool:
    """SIGTERM to the stage whose process id `leader` holds; False when there is none to ask."""
    try:
        leading = int(leader.read_text())
    except (FileNotFoundError, ValueError):
        return False
    with suppress(ProcessLookupError):
        os.kill(leading, signal.SIGTERM)
    return True


def _environment(workspace: Workspace, stage: str) -> dict[str, str]:
    """The stage sees the settings of the checkout that the workspace came from, and the interpreter that runs us."""
    executables = str(Path(sys.executable).parent)
    return {
        **os.environ,
        **as_environment(workspace.settings),
        "PATH": os.pathsep.join([executables, os.environ.get("PATH", "")]),
        "PYTHONUNBUFFERED": "1",
        "DVC_NO_ANALYTICS": "1",
        "NIGHTOWL_STAGE": stage,
    }
