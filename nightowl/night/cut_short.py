"""Why a night ended before its verdict, for its report: in which stage, after how long, and how far its training is kept."""

from datetime import UTC, datetime

from nightowl.checkpoint.place import local_place
from nightowl.checkpoint.standing import saved_since
from nightowl.errors import Interrupted, NightowlError
from nightowl.night.record import Night, begun_run, runs_of, workspace_in_tree
from nightowl.params import load_params
from nightowl.report.content import Failure
from nightowl.stages.workspace import STAGES


def failure_of(night: Night, error: BaseException) -> Failure:
    """What is known of the end of `night` by `error`."""
    interrupted, stage = isinstance(error, Interrupted | KeyboardInterrupt), _running(night)
    message = str(error) or (f"stopped in {stage or 'its beginning'}" if interrupted else type(error).__name__)
    begun = begun_run(night)
    ran = (datetime.now(UTC) - begun.at).total_seconds() if begun and begun.stage == stage else None
    saved = _saved(night) if stage == "train" else None
    return Failure(stage=stage, message=message, interrupted=interrupted, seconds=ran, saved=saved)


def _running(night: Night) -> str | None:
    """The stage that the night ended in: the one with an outcome, or a beginning, that did not end well."""
    workspace, done = workspace_in_tree(night), {run.stage for run in runs_of(night)}
    begun = [s for s in STAGES if workspace.outcome(s).exists() or workspace.leader(s).exists()]
    return next((stage for stage in begun if stage not in done), None)


def _saved(night: Night) -> str | None:
    """How far the night's training is saved here. What cannot be read is not known: the fault itself is what must be told."""
    try:
        workspace = workspace_in_tree(night)
        moment = saved_since(local_place(workspace.settings, night.detector), night.started_at.timestamp())
        num_epochs = load_params(night.tree, night.detector).train.epochs
    except (NightowlError, OSError):
        return None
    return f"at step {moment.step}, with {moment.epoch} of {num_epochs} epochs done" if moment else None
