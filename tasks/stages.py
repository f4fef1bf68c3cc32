"""One stage of the pipeline, by its name. DVC decides whether it executes or is restored; this restates nothing of it."""

import subprocess
import time

from prefect import task
from prefect.cache_policies import NO_CACHE

from nightowl.night.record import Night, StageRun, add_run, begin_run, workspace_in_tree
from nightowl.processes import lines, wait
from nightowl.stages.repro import failure, forget, push, read_outcome, repro, stop
from nightowl.stages.workspace import Workspace
from tasks.say import orchestrated, say


@task(name="stage", task_run_name="{stage}", cache_policy=NO_CACHE)
def run_stage(night: Night, stage: str, only_restore: bool = False) -> None:
    """Bring the outputs of `stage` about in the night's tree, and push them when there is a remote. `only_restore`: they were
    made on another machine, and must not be made here.

    Raises:
        StageFailed: with the stage's own message.
        UserError: when that message is about something the user gave.
        Interrupted: when it was stopped and will go on next time.
    """
    workspace = workspace_in_tree(night)
    forget(workspace, stage)
    name = f"{stage}@{night.detector}"
    begin_run(night, stage)
    started = time.monotonic()
    code = _followed(
        workspace, stage, repro(workspace, stage, pull=night.shares, piped=orchestrated(), only_restore=only_restore)
    )
    error = failure(workspace, stage, code)
    if error is not None:
        raise error
    executed = read_outcome(workspace.outcome(stage)) is not None
    if night.shares and not only_restore:
        _push(workspace, stage)
    run = StageRun(stage=stage, executed=executed, seconds=time.monotonic() - started)
    add_run(night, run)
    say(f"{name}: {'done' if run.executed else 'restored from the cache'} in {run.seconds:.0f} s")


def _push(workspace: Workspace, stage: str) -> None:
    """Failing to share is no reason to lose the night: it is said, and the next night pushes again."""
    if _followed(workspace, stage, push(workspace, stage, piped=orchestrated())) != 0:
        say(f"{stage}@{workspace.detector}: its outputs could not be pushed to the DVC remote; they are in the local cache")


def _followed(workspace: Workspace, stage: str, process: "subprocess.Popen[bytes]") -> int:
    """Say what `process` writes until it ends; returns its exit code. Whatever interrupts this ends the process in order."""
    try:
        for line in lines(process) if process.stdout else ():
            say(line)
        return wait(process)
    except BaseException:
        stop(process, workspace.leader(stage))
        raise
