"""How a run is, by what stands on its board: the same for every engine."""

from datetime import datetime, timedelta

from nightowl.errors import UserError
from nightowl.machines.board import Board
from nightowl.machines.engine import RunState, RunStatus
from nightowl.machines.records import NodeBeat

_AT_WORK = ("ready", "training", "running", "leaving")


def standing(board: Board, now: datetime) -> RunStatus:
    """The status of the run; `now` is aware. Raises UserError when there is no such run on the board."""
    job = board.job()
    if job is None:
        raise UserError(f"{board.bucket.url}: no run {board.run_id!r} there")
    end, beats, generation = board.end(), tuple(board.beats()), board.newest_generation()
    state: RunState
    old = timedelta(seconds=job.heartbeat_old_seconds)
    if end is not None:
        state, message = end.how, end.message
    elif now >= job.deadline:
        state, message = "deadline", f"not done by {job.deadline:%Y-%m-%d %H:%M} UTC, the hard end of its machines"
    elif any(is_at_work(beat, now, old) for beat in beats):
        state, message = "running", ""
    else:
        state, message = "waiting", ""
    return RunStatus(
        run_id=board.run_id,
        state=state,
        message=message,
        stages_done=tuple(each.stage for each in board.stage_ends()),
        nodes=beats,
        generation=generation.number if generation else None,
    )


def is_at_work(beat: NodeBeat, now: datetime, old: timedelta) -> bool:
    """Does a node work, by a sign of life that is not `old`?"""
    return beat.state in _AT_WORK and now - beat.at <= old
