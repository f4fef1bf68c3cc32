"""The training loop: epochs of optimizer steps, a validation after each, and a state that can be gone on from at any step.

Whatever ends it, and however often, the same inputs come to the same weights, EMA, optimizer and results table, bit for bit,
at equal number of ranks and micro-batch. What is decided is in `progress`, what is computed in `step` and `validation`.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import torch

from nightowl.checkpoint.commits import Moment, Reason
from nightowl.data.batch import Batch, Loader
from nightowl.errors import Preempted, StageFailed
from nightowl.training.group import Group
from nightowl.training.plan import Plan
from nightowl.training.progress import MAX_SKIPPED_IN_ROW, Figures, Progress
from nightowl.training.rehearsal import rehearse
from nightowl.training.state import State, capture, restore
from nightowl.training.step import OutOfMemory, Stepper, Taken
from nightowl.training.stopping import SaveRequest, StopSource
from nightowl.training.validation import Cut, Validator
from nightowl.training.watch import EpochEnd, Start, Watcher
from nightowl.training.yolo import Pieces, set_training


class Store(Protocol):
    """Where states go; behind the training, but for `flush`."""

    def is_due(self) -> bool: ...

    def save(self, capture: Callable[[], State], moment: Moment) -> None: ...

    def flush(self) -> None: ...


def no_fault(phase: str, epoch: int, step: int) -> None:
    """Nothing goes wrong of itself."""


@dataclass
class Training:
    """A training and what it works with. `store` is rank 0's; `found` is the state to go on from, on every rank."""

    plan: Plan
    pieces: Pieces
    loader: Loader
    validator: Validator
    group: Group
    stop: StopSource
    watcher: Watcher
    store: Store | None = None
    found: State | None = None
    request: SaveRequest = field(default_factory=lambda: SaveRequest(None))
    fault: Callable[[str, int, int], None] = no_fault
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.learner = self.pieces.learner
        self.stepper = Stepper(self.plan, self.learner, self.group, self.stop, self._is_due, self.fault)
        self.progress = Progress(micro_batch=self.plan.micro_batch, val_batch=self.plan.val_batch)
        self._began = self.clock()
        self._seconds_before = 0.0

    def train(self) -> Progress:
        """Train to the end; returns how it went.

        Raises:
            Preempted: asked to stop; the state is saved. StageFailed: the loss is no number any more, or memory does not
            suffice for one image.
        """
        self._begin()
        while not self.progress.finished:
            set_training(self.learner.model, self.pieces.frozen)
            for batch, waited in timed(self.loader.steps(self.progress.epoch, self.progress.step), self.clock):
                begun = self.clock()
                taken = self._step(batch)
                self.progress = self.progress.took(waited, self.clock() - begun)
                self._advance(taken, waited)
                if taken.stop:
                    self._preempt()
                if taken.save:
                    self._save("time")
            self.learner.criterion.next_epoch()
            self.watcher.validating(self.progress.epoch + 1)
            self._close_epoch(self._validate())
        return self.progress

    def _begin(self) -> None:
        if self.found is not None:
            self.progress = restore(self.found, self.learner)
            self._seconds_before = self.progress.seconds
        self.progress = self.progress.in_world(self.group.world_size)
        if self.plan.is_synchronised:  # shares are taken whole
            self.progress = self.progress.model_copy(update={"micro_batch": self.plan.micro_batch})
        optimizer = self.learner.optimizer
        rate = min(group["initial_lr"] for group in optimizer.param_groups)
        self.watcher.started(
            Start(
                first_epoch=self.progress.epoch + 1,
                first_step=self.progress.step,
                num_epochs=self.plan.params.epochs,
                num_batches=self.plan.num_steps,
                num_images=self.plan.num_images,
                optimizer=f"{type(optimizer).__name__} lr {rate:g}",
                notes=self.pieces.notes,
            )
        )
        if self.found is None:
            rehearse(self)

    def _step(self, batch: Batch) -> Taken:
        """Take the step that is next, with as many images at once as memory holds."""
        epoch, step = self.progress.epoch, self.progress.step
        self.pieces.schedule.apply(self.learner.optimizer.param_groups, epoch, step)
        while isinstance(taken := self.stepper.take(batch, epoch, step, self.progress.micro_batch), OutOfMemory):
            self.shrink("training")
        return taken

    def _advance(self, taken: Taken, waited: float) -> None:
        self.progress = self._timed(self.progress.stepped(taken.losses) if taken.losses else self.progress.stepped_over())
        epoch, batch = self.progress.epoch + 1, self.progress.step
        if taken.losses:
            self.watcher.batch_done(epoch, batch, self.progress.mean_losses, waited)
            return
        params = self.plan.params
        advice = f"lower train.lr0 ({params.lr0:g}) or lengthen train.warmup_epochs ({params.warmup_epochs:g})"
        if self.progress.num_skipped_in_row > MAX_SKIPPED_IN_ROW:
            raise StageFailed(
                f"the loss was no number in {self.progress.num_skipped_in_row} steps on end, up to epoch {epoch}, batch "
                f"{batch}: expected a number; {advice}"
            )
        self.watcher.note(f"epoch {epoch}, batch {batch}: the loss or its gradient is no number; this step is not taken")

    def _validate(self) -> Figures:
        def asked() -> bool:
            return self.stop.reason() is not None

        def fault(first: int) -> None:
            self.fault("validation", self.progress.epoch, first)

        while True:
            measured = self.validator.measure(self.learner.ema.ema, self.progress.val_batch, asked, fault)
            match measured:
                case Cut.MEMORY:
                    self.shrink("validation")
                case Cut.STOP:
                    self._preempt()
                case Figures():
                    return measured

    def _close_epoch(self, figures: Figures) -> None:
        params, groups = self.plan.params, self.learner.optimizer.param_groups
        rates = {f"pg{number}": group["lr"] for number, group in enumerate(groups)}
        losses = self.progress.mean_losses
        self.progress = self._timed(self.progress).validated(figures, rates, params.epochs, params.patience_epochs)
        is_best = self.progress.best_epoch == self.progress.epoch
        if is_best:
            ema = self.learner.ema.ema.state_dict()
            self.learner.best = {name: _half(value) for name, value in ema.items()}
        self._save("epoch")
        self.watcher.epoch_done(EpochEnd(self.progress.epoch, losses, rates, figures, is_best, self.progress.finished))

    def _preempt(self) -> None:
        """Save this step, wait until it is committed, and end."""
        self._save("stop")
        if self.store:
            self.store.flush()
        reasons = [reason for reason in self.group.gather(self.stop.reason()) or [] if reason]
        raise Preempted(f"{reasons[0] if reasons else 'another rank was asked to stop'}; run it again and it goes on")

    def _is_due(self) -> bool:
        """Whether a state should be saved: by time, where rank 0 decides, or by request, which may be made on any host."""
        return self.request.asks() or (self.store is not None and self.store.is_due())

    def _save(self, reason: Reason) -> None:
        self.request.answered()
        if self.store:
            progress = self.progress
            moment = Moment(
                step=progress.epoch * self.plan.num_steps + progress.step,
                epoch=progress.epoch,
                reason=reason,
                best=reason == "epoch" and progress.best_epoch == progress.epoch,
                finished=progress.finished,
                world_size=self.group.world_size,
            )
            self.store.save(lambda: capture(self.learner, progress), moment)

    def shrink(self, phase: str) -> None:
        """Half as many images at once from here on. Raises StageFailed when it is one already."""
        smaller = self.progress.halved(phase)
        if smaller is None:
            raise StageFailed(
                f"{self.plan.device}: out of memory in {phase} with one image of {self.plan.image_size} px at once; lower "
                "prepare.image_size, set train.activation_checkpointing, or take a smaller model"
            )
        self.progress = smaller
        if self.plan.device.startswith("cuda"):
            torch.cuda.empty_cache()
        shrunk = smaller.shrunk[-1]
        self.watcher.note(
            f"out of memory in {phase}, epoch {shrunk.epoch + 1}: {shrunk.after} images at once instead of {shrunk.before}; "
            "the global batch stays"
        )

    def _timed(self, progress: Progress) -> Progress:
        return progress.model_copy(update={"seconds": self._seconds_before + self.clock() - self._began})


def timed(batches: Iterable[Batch], clock: Callable[[], float]) -> Iterator[tuple[Batch, float]]:
    """Each batch, with the seconds that it was waited for."""
    begun = clock()
    for batch in batches:
        yield batch, clock() - begun
        del batch  # its memory is the loader's again
        begun = clock()


def _half(value: torch.Tensor) -> torch.Tensor:
    """On the CPU, floats as fp16; as it ships."""
    copied = value.detach().to("cpu", copy=True)
    return copied.half() if copied.is_floating_point() else copied
