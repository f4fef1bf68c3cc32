"""The work that a node was given, and the spans of time that it comes to."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from nightowl.machines.generations import Sight
from nightowl.machines.records import Event, EventKind
from nightowl.machines.supervise import TOGETHER, Work
from nightowl.training.steps_taken import Steps


@dataclass(frozen=True)
class Assignment:
    """`taken_before`: the last step of the training that was taken before this; `steps_at`: when the first of this was to be
    taken; `stop_at`: when it was asked to stop; `ended_at`: seconds of a clock that only goes forward."""

    work: Work
    rank: int
    at: datetime
    taken_before: int | None = None
    steps_at: datetime | None = None
    stop_at: datetime | None = None
    ended_at: float | None = None

    @property
    def running(self) -> bool:
        return self.work.how is None

    @property
    def leads_training(self) -> bool:
        return self.rank == 0 and self.work.stage == TOGETHER

    def aged(self, seconds: float) -> Work:
        """The work, with how long ago it ended."""
        if self.ended_at is None:
            return self.work
        return Work(self.work.stage, self.work.generation, self.work.how, self.work.message, seconds - self.ended_at)


def taken_before(sights: Mapping[str, Sight]) -> int | None:
    """The last step that whoever led the training last had taken, as far as its heartbeat told."""
    leaders = [(sight.beat.generation or 0, sight.beat.taken) for sight in sights.values() if sight.beat.taken is not None]
    return max(leaders)[1] if leaders else None


def spans(instance: str, done: Assignment, steps: Steps | None, now: datetime) -> list[Event]:
    """The events of work that ended now. A further host of a training counts no steps: rank 0 does."""

    def span(kind: EventKind, start: datetime, end: datetime, num: int = 0, redone: int = 0) -> Event:
        work = done.work
        return Event(
            instance=instance,
            kind=kind,
            start=start,
            end=end,
            stage=work.stage,
            generation=work.generation,
            steps=num,
            redone=redone,
        )

    asked = done.stop_at or now
    stopping = [span("checkpoint", asked, now)] if done.stop_at else []
    if done.work.stage != TOGETHER:
        return [span("stage", done.at, asked), *stopping]
    if done.rank != 0:
        return [span("steps", done.at, asked), *stopping]
    if steps is None or done.steps_at is None:
        return [span("cache", done.at, asked), *stopping]
    redone = max(0, (done.taken_before or 0) - steps.first)
    trained = span("steps", done.steps_at, max(asked, done.steps_at), steps.last - steps.first, redone)
    return [span("cache", done.at, done.steps_at), trained, *stopping]
