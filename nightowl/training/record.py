"""What a training says of how it came about, for the bundle: in which numbers, on how many ranks, and what went otherwise."""

from typing import Any

from nightowl.records import Record
from nightowl.training.compute import Compute
from nightowl.training.progress import Shrink, World
from nightowl.training.state import State, compute_of, progress_of


class TrainingRecord(Record):
    """`resolved`: what `auto` stood for. `worlds`: the number of ranks, and from which step on. `micro_batch`: images a forward
    pass at the end; `shrunk`: when memory made it smaller. `skipped`: steps (epoch, step, from 1) whose loss was no number.
    `waiting_for_data`: the share of the steps' time, over all restarts, in which rank 0 waited for its images."""

    compute: Compute
    resolved: dict[str, str | float]
    worlds: tuple[World, ...]
    micro_batch: int
    shrunk: tuple[Shrink, ...]
    skipped: tuple[tuple[int, int], ...]
    seconds: float
    waiting_for_data: float | None


def training_record(state: State) -> TrainingRecord:
    progress, values = progress_of(state), dict[str, Any](state)
    return TrainingRecord(
        compute=compute_of(state),
        resolved=values["resolved"],
        worlds=progress.worlds,
        micro_batch=progress.micro_batch,
        shrunk=progress.shrunk,
        skipped=tuple((epoch + 1, step + 1) for epoch, step in progress.skipped),
        seconds=progress.seconds,
        waiting_for_data=progress.waited_seconds / progress.step_seconds if progress.step_seconds else None,
    )
