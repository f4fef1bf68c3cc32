"""What a node does next, from all that it sees: a pure function of the board, its own work, and the notices.

The node acts, looks again and asks anew, so a node that was killed between two acts leaves nothing half done that another
would not take further.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from nightowl.machines.generations import Sight, lost_members, next_generation, room_for_more
from nightowl.machines.job import Job
from nightowl.machines.poison import poison
from nightowl.machines.records import (
    Cancel,
    Generation,
    GenerationEnd,
    HowGenerationEnded,
    HowRunEnded,
    RunEnd,
    StageFailure,
)

TOGETHER = "train"  # the stage that all nodes of a generation run; the others are rank 0's
COMMIT_SECONDS = 100.0
HOPELESS_SECONDS = 15.0  # ranks whose peer is gone have nothing to commit: the step that they are in never ends


@dataclass(frozen=True)
class Work:
    """What this node runs or has run of `stage`. `how` is None while it runs; `ended_seconds`: since it ended."""

    stage: str
    generation: int
    how: Literal["done", "preempted", "failed"] | None = None
    message: str = ""
    ended_seconds: float = 0.0


@dataclass(frozen=True)
class View:
    """All that a decision rests on. `stage` is the first that has not ended, None when all have; `quiet_seconds`: since the
    last step was committed, or something else went forward; `waited_seconds`: since there is no generation."""

    job: Job
    me: str
    now: datetime
    end: RunEnd | None
    cancel: Cancel | None
    newest: Generation | None
    newest_end: GenerationEnd | None
    stage: str | None
    failures: Sequence[StageFailure]
    sights: Mapping[str, Sight]
    work: Work | None
    notice: str | None
    waited_seconds: float
    quiet_seconds: float

    @property
    def has_something_to_save(self) -> bool:
        """Whether a step was taken in the work's generation, as far as its leader told. Without one, the ranks may wait where
        no signal is heard, for hosts that will not come."""
        if self.work is None or self.work.stage != TOGETHER or self.newest is None:
            return True
        leader = self.sights.get(self.newest.members[0].instance)
        return leader is None or leader.beat.generation != self.work.generation or leader.beat.taken is not None


@dataclass(frozen=True)
class Wait:
    said: str


@dataclass(frozen=True)
class Open:
    generation: Generation


@dataclass(frozen=True)
class Begin:
    """Run `stage` as `rank` of `generation`."""

    stage: str
    generation: Generation
    rank: int


@dataclass(frozen=True)
class Stop:
    """Ask what runs here to save and end, and end it after `patience_seconds`."""

    patience_seconds: float
    said: str


@dataclass(frozen=True)
class CloseGeneration:
    how: HowGenerationEnded
    message: str


@dataclass(frozen=True)
class Finish:
    """The stage that ran here is done, and pushed."""

    stage: str


@dataclass(frozen=True)
class CloseRun:
    how: HowRunEnded
    message: str


@dataclass(frozen=True)
class Leave:
    """`decrement`: nobody is to take this node's place."""

    decrement: bool
    said: str


Action = Wait | Open | Begin | Stop | CloseGeneration | Finish | CloseRun | Leave


def decide(view: View) -> Action:
    """The next act."""
    running = view.work is not None and view.work.how is None
    if view.end is not None:
        said = f"the run is over: {view.end.how}"
        return Stop(COMMIT_SECONDS, said) if running else Leave(decrement=True, said=said)
    over = _over(view)
    if over is not None:
        return over
    generation = view.newest if view.newest_end is None else None
    if view.notice is not None:
        if generation is not None and generation.rank_of(view.me) is not None and _concerned(view, generation, view.me):
            return CloseGeneration("preempted", f"{view.me}: {view.notice}")
        return _between(view) if running else Leave(decrement=False, said=view.notice)
    if generation is None:
        return _between(view)
    lost = lost_members(generation, view.sights, view.job.heartbeat_old_seconds)
    if view.stage != TOGETHER:
        lost = {rank: what for rank, what in lost.items() if rank == 0}
    if lost:
        return CloseGeneration("member_lost", "; ".join(lost.values()))
    rank = generation.rank_of(view.me)
    if running and (rank is None or (view.work is not None and view.work.generation != generation.number)):
        return Stop(COMMIT_SECONDS, "its generation is over")
    if rank is None:
        return Wait(f"generation {generation.number} goes on without this node")
    return _within(view, generation, rank)


def _over(view: View) -> CloseRun | None:
    if view.now >= view.job.deadline:
        return CloseRun(
            "deadline", f"it is {view.now:%Y-%m-%d %H:%M} UTC, past the run's deadline; run it again and it goes on"
        )
    if view.cancel is not None:
        return CloseRun("cancelled", f"cancelled by {view.cancel.by}")
    if view.quiet_seconds > view.job.stall_minutes * 60:
        where = "no node has trained" if view.newest_end or not view.newest else "no step was committed"
        return CloseRun(
            "failed", f"{where} for {view.job.stall_minutes:g} minutes (stall_minutes); run it again and it goes on"
        )
    hopeless = poison(view.failures)
    return CloseRun("poison", hopeless) if hopeless else None


def _concerned(view: View, generation: Generation, instance: str) -> bool:
    """Whether the generation cannot go on without this member: while all train; rank 0 at any time."""
    return view.stage == TOGETHER or generation.rank_of(instance) == 0


def _between(view: View) -> Action:
    if view.work is not None and view.work.how is None:
        end = view.newest_end
        hopeless = (end is not None and end.how in ("member_lost", "failed")) or not view.has_something_to_save
        return Stop(HOPELESS_SECONDS if hopeless else COMMIT_SECONDS, end.message if end else "there is no generation")
    found = next_generation(view.job, view.newest, view.sights, view.waited_seconds, view.now)
    return Wait(found) if isinstance(found, str) else Open(found)


def _within(view: View, generation: Generation, rank: int) -> Action:
    if view.stage is None:
        return CloseRun("done", "") if rank == 0 else Wait("all stages are done")
    work = view.work
    if work is not None and work.how is None:
        if work.stage != view.stage:
            return Stop(COMMIT_SECONDS, f"{work.stage} is done")
        if rank == 0 and view.stage == TOGETHER and room_for_more(view.job, generation, view.sights):
            return CloseGeneration("preempted", "there are more nodes now")
        return Wait("")
    if work is None or work.stage != view.stage or work.generation != generation.number:
        if rank == 0 or (view.stage == TOGETHER and len(generation.members) > 1):
            return Begin(view.stage, generation, rank)
        return Wait(f"{view.stage} is rank 0's")
    return _ended(view, work, rank, several=len(generation.members) > 1)


def _ended(view: View, work: Work, rank: int, several: bool) -> Action:
    if work.how == "done":
        return Finish(work.stage) if rank == 0 else Wait(f"rank 0 publishes {work.stage}")
    if work.how == "preempted":
        return CloseGeneration("preempted", work.message)
    if several and work.ended_seconds <= view.job.heartbeat_old_seconds:
        return Wait("it failed: is a peer gone?")  # then that is why, and its heartbeat will tell
    return CloseGeneration("failed", work.message)
