"""A trial before the long run: what would fail at hour five fails in the first minute.

Real steps with the first epoch's largest batches on every rank, a part of validation, and a state that goes to bytes and back.
Afterwards everything is as before, bit for bit; only the number of images that fit at once is remembered.
"""

import time
from itertools import islice
from typing import TYPE_CHECKING

from nightowl.checkpoint.serialise import from_bytes, to_bytes
from nightowl.errors import Preempted, StageFailed
from nightowl.training.state import capture, digest, restore
from nightowl.training.step import OutOfMemory
from nightowl.training.validation import Cut
from nightowl.training.yolo import set_training

if TYPE_CHECKING:
    from nightowl.training.loop import Training

NUM_STEPS = 2


def rehearse(training: "Training") -> None:
    """Try steps, validation and a checkpoint. Raises what they raise; Preempted when asked to stop meanwhile."""
    begun, learner, start = time.monotonic(), training.learner, training.progress
    before = capture(learner, start)
    set_training(learner.model, training.pieces.frozen)
    for step, batch in enumerate(islice(training.loader.steps(0), NUM_STEPS)):
        training.pieces.schedule.apply(learner.optimizer.param_groups, 0, step)
        while isinstance(taken := training.stepper.take(batch, 0, step, training.progress.micro_batch), OutOfMemory):
            training.shrink("training")
        if taken.stop:
            raise Preempted("asked to stop before the first step; run it again")
    _try_validation(training)
    _try_checkpoint(training)
    restore(before, learner)
    if digest(capture(learner, start)) != digest(before):
        raise StageFailed("rehearsal: the state after it is not the state before it")
    training.watcher.note(f"rehearsal: {NUM_STEPS} steps, validation and checkpoint tried in {time.monotonic() - begun:.1f} s")


def _try_validation(training: "Training") -> None:
    ema, world_size = training.learner.ema.ema, training.group.world_size
    while True:
        progress = training.progress
        measured = training.validator.measure(
            ema, progress.val_batch, lambda: False, lambda first: training.fault("validation", 0, first), num_batches=world_size
        )
        if measured is not Cut.MEMORY:
            return
        training.shrink("validation")


def _try_checkpoint(training: "Training") -> None:
    state = capture(training.learner, training.progress)
    if training.group.rank == 0 and digest(from_bytes(to_bytes(state))) != digest(state):
        raise StageFailed("rehearsal: a state read back is not the state that was written; nothing could be gone on from")
