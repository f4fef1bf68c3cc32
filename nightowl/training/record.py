"""What a training says of how it came about, for the bundle: in which numbers, on how many ranks, and what went otherwise.

Of the records alone: who reads them, as a report does, need not load torch.
"""

from nightowl.records import Record
from nightowl.training.compute import Compute
from nightowl.training.progress import Shrink, World


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
