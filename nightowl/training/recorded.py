"""The record of a training, from its state."""

from typing import Any

from nightowl.training.record import TrainingRecord
from nightowl.training.state import State, compute_of, progress_of


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
