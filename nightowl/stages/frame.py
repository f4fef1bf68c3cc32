"""What every stage does around its own work: guard, run, publish, and say how it ended.

DVC's exit code says only that something went wrong, so the stage writes `outcome.json`: done, preempted or failed.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Literal, NoReturn

from nightowl.cloud.metadata import Metadata, SpotWatcher
from nightowl.errors import Interrupted, NightowlError, Preempted, StageFailed, UserError, explain_os_error
from nightowl.files import publishing_folder, write_atomic, write_record
from nightowl.notices import FileNotice, Notices, NoticeWatcher, TimeNotice, ask_main_thread_to_stop
from nightowl.params import Params, load_params
from nightowl.processes import ask_for_signal_when_parent_ends
from nightowl.records import Record
from nightowl.settings import Settings, load_settings
from nightowl.stages.workspace import Workspace

_SPARE_BYTES = 64 << 10  # kept while a stage runs, so that one that fills the disk can still say so

Run = Callable[[Params, Workspace, Path], None]


class StageOutcome(Record):
    """How an execution ended; `exit_code` is what the error asks the command line to end with, 0 when done."""

    status: Literal["done", "preempted", "failed"]
    exit_code: int
    message: str


def main(stage: str, run: Run) -> NoReturn:
    """Run `stage` for the detector named on the command line, in the current folder, and exit."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: python -m nightowl.stages.{stage} DETECTOR")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been held, or ignored, until here
    ask_for_signal_when_parent_ends(signal.SIGTERM)  # a killed DVC must not leave a training that nobody waits for
    code = execute(stage, run, Path.cwd(), sys.argv[1])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # all is said: a request to stop that comes late has nothing to stop
    sys.exit(code)


def execute(stage: str, run: Run, root: Path, detector: str) -> int:
    """Run one stage and publish its folder whole; returns the exit code. Nothing is published unless all went well."""
    workspace = Workspace(root, detector, load_settings(root))
    notices = Notices(_watchers(workspace.settings), ask_main_thread_to_stop)
    signal.signal(signal.SIGTERM, partial(_preempt, notices))
    write_atomic(workspace.leader(stage), str(os.getpid()))
    spare = workspace.outcome(stage).with_suffix(".spare")
    write_atomic(spare, bytes(_SPARE_BYTES))
    try:
        outcome = _attempt(stage, run, workspace, notices)
        spare.unlink(missing_ok=True)
        write_record(workspace.outcome(stage), outcome)
    finally:
        spare.unlink(missing_ok=True)
        workspace.leader(stage).unlink(missing_ok=True)
    if outcome.status != "done":
        print(f"nightowl: {outcome.message}", file=sys.stderr)
    return outcome.exit_code


def _attempt(stage: str, run: Run, workspace: Workspace, notices: Notices) -> StageOutcome:
    try:
        _refuse_another_name(stage, workspace.detector)
        params = load_params(workspace.root, workspace.detector)
        with notices.watched(), publishing_folder(workspace.out(stage)) as out:
            run(params, workspace, out)
    except Interrupted as error:
        return StageOutcome(status="preempted", exit_code=error.exit_code, message=str(error))
    except KeyboardInterrupt:
        return StageOutcome(status="preempted", exit_code=Interrupted.exit_code, message=f"{stage}: interrupted")
    except NightowlError as error:
        return StageOutcome(status="failed", exit_code=error.exit_code, message=str(error))
    except OSError as error:
        explained = explain_os_error(error)
        if explained is None:
            traceback.print_exc()
        return StageOutcome(status="failed", exit_code=(explained or StageFailed()).exit_code, message=str(explained or error))
    except Exception as error:  # noqa: BLE001  the border of the process: an unforeseen fault must still leave its outcome
        traceback.print_exc()
        return StageOutcome(status="failed", exit_code=1, message=f"{stage}: {type(error).__name__}: {error}")
    return StageOutcome(status="done", exit_code=0, message="")


def _refuse_another_name(stage: str, detector: str) -> None:
    sent_for = os.environ.get("NIGHTOWL_STAGE")
    if sent_for not in (None, stage, f"{stage}@{detector}"):
        raise UserError(
            f"{stage}@{detector} would execute, but this machine was sent for {sent_for}: its results are missing from the "
            "shared cache; run that stage first, on a machine meant for it, and push"
        )


def _watchers(settings: Settings) -> list[NoticeWatcher]:
    """Whoever may know that this stage is to stop."""
    watchers: list[NoticeWatcher] = []
    if settings.stop_at is not None:
        watchers.append(TimeNotice(settings.stop_at.timestamp(), settings.stop_at.isoformat(sep=" ")))
    if settings.stop_notice is not None:
        watchers.append(FileNotice(settings.stop_notice))
    if settings.spot_notices:
        watchers.append(SpotWatcher(Metadata(), partial(print, file=sys.stderr)))
    return watchers


def _preempt(notices: Notices, signum: int, frame: FrameType | None) -> NoReturn:
    raise Preempted(f"{notices.reason() or 'asked to stop'}; run it again and it goes on")
