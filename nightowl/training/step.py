"""One optimizer step on one global batch, whatever number of ranks and micro-batches it is computed in.

Each rank goes forward and backward through its share in micro-batches; losses are not normalised there. Gradients are summed
over all ranks once, and scaled by one normaliser over the global batch. Where memory runs out on any rank, all ranks go back
to the state before the step and take it again with half as many images at once.

B: images of the global batch; T: the sum of target scores of a branch of the loss.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from nightowl.data.batch import Batch
from nightowl.errors import StageFailed
from nightowl.training.group import Group
from nightowl.training.images import image_side, to_targets
from nightowl.training.memory import is_out_of_memory
from nightowl.training.plan import Plan
from nightowl.training.state import Learner, seed_step
from nightowl.training.stopping import StopSource

MAX_GRADIENT_NORM = 10.0  # ultralytics
_NO_PARTS = (
    "{device}: out of memory in training with a share of {num} images, which train.sync_batch_norm does not let be taken in "
    "parts; lower train.global_batch, set train.activation_checkpointing, or switch it off"
)
Fault = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Taken:
    """A step was taken. `losses` by name, over the global batch; None when a number in it was none, and nothing changed.

    `stop`, `save`: whether any rank asks for it.
    """

    losses: dict[str, float] | None
    stop: bool
    save: bool


@dataclass(frozen=True)
class OutOfMemory:
    """Some rank ran out of memory; nothing changed."""


@dataclass
class Stepper:
    """Takes steps. `fault(phase, epoch, step)` is called before each forward pass; tests raise there."""

    plan: Plan
    learner: Learner
    group: Group
    stop: StopSource
    is_due: Callable[[], bool]
    fault: Fault

    def __post_init__(self) -> None:
        self.forward = torch.compile(self.learner.model) if self.plan.params.compile else self.learner.model
        self._trained = [(name, p) for name, p in self.learner.model.named_parameters() if p.requires_grad]
        self._buffers = list(self.learner.model.buffers())
        self._before = [buffer.clone() for buffer in self._buffers]

    def take(self, batch: Batch, epoch: int, step: int, micro_batch: int) -> Taken | OutOfMemory:
        """Gradients, clipping, optimizer and EMA for this rank's share `batch`; all or nothing, on all ranks alike."""
        self.group.at(f"epoch {epoch + 1}, step {step + 1}")
        torch._foreach_copy_(self._before, self._buffers)
        seed_step(self.plan.params.seed, epoch, step, self.group.rank)
        whole = self.group.world_size == 1 and len(batch) <= micro_batch
        try:
            sums = self._accumulate(batch, epoch, step, micro_batch, whole)
            failed = False
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if self.plan.is_synchronised:  # the others wait in a layer for this rank: only its end is seen there
                raise StageFailed(_NO_PARTS.format(device=self.plan.device, num=len(batch))) from error
            failed = True
        any_failed, stop, save = self.group.agree([failed, self.stop.reason() is not None, self.is_due()])
        if any_failed:
            self._undo()
            return OutOfMemory()
        return Taken(self._finish(sums, whole), bool(stop), bool(save))

    def _accumulate(self, batch: Batch, epoch: int, step: int, micro_batch: int, whole: bool) -> Tensor:
        """Go forward and backward through the share; returns the vector (images, T of each branch, loss items)."""
        learner, device = self.learner, torch.device(self.plan.device)
        side = image_side(self.plan, epoch, step)
        sums = torch.zeros(1 + learner.criterion.num_branches + len(learner.criterion.names), device=device)
        sums[0] = len(batch)
        for part in _parts(batch, micro_batch):
            self.fault("training", epoch, step)
            targets = to_targets(part, device, side, learner.compute.torch_format)
            with learner.compute.autocast(device):
                preds = self.forward(targets["img"])
            loss, found = learner.criterion(_fp32(preds), targets, whole)
            learner.scaler.scale(loss).backward()
            sums[1:] += found
        return sums

    def _finish(self, sums: Tensor, whole: bool) -> dict[str, float] | None:
        learner, num_branches = self.learner, self.learner.criterion.num_branches
        if not whole:
            self._normalise(self._summed(sums))
            sums[-len(learner.criterion.names) :] /= sums[num_branches].clamp(min=1)
        learner.scaler.unscale_(learner.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(learner.model.parameters(), max_norm=MAX_GRADIENT_NORM)
        *losses, size = [*sums[-len(learner.criterion.names) :].tolist(), float(norm)]
        if not _finite(losses) or (not learner.scaler.is_enabled() and not _finite([size])):
            self._undo()
            learner.scaler.update()
            return None
        learner.scaler.step(learner.optimizer)
        learner.scaler.update()
        learner.optimizer.zero_grad()
        learner.ema.update(learner.model)
        return dict(zip(learner.criterion.names, losses, strict=True))

    def _summed(self, sums: Tensor) -> Tensor:
        """`sums` and all gradients added up over all ranks, in one transfer."""
        if self.group.world_size > 1:
            for _, parameter in self._trained:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            gradients = [parameter.grad for _, parameter in self._trained if parameter.grad is not None]
            flat = self.group.add(torch.cat([sums, *(gradient.reshape(-1) for gradient in gradients)]))
            parts = torch.split(flat, [len(sums), *(gradient.numel() for gradient in gradients)])
            sums.copy_(parts[0])
            for gradient, part in zip(gradients, parts[1:], strict=True):
                gradient.copy_(part.view(gradient.shape))
        return sums

    def _normalise(self, sums: Tensor) -> None:
        """Scale each branch's gradients by B / T."""
        num_branches = self.learner.criterion.num_branches
        scales = sums[0] / sums[1 : 1 + num_branches].clamp(min=1)
        for branch in range(num_branches):
            own = [
                p.grad for name, p in self._trained if p.grad is not None and self.learner.criterion.branch_of(name) == branch
            ]
            torch._foreach_mul_(own, scales[branch])

    def _undo(self) -> None:
        self.learner.optimizer.zero_grad()
        torch._foreach_copy_(self._buffers, self._before)


def _parts(batch: Batch, micro_batch: int) -> Iterator[Batch]:
    for first in range(0, len(batch), micro_batch):
        yield batch.part(first, min(first + micro_batch, len(batch)))


def _fp32(preds: object) -> object:
    """Head outputs in fp32, in which the loss is computed; a no-op where they are."""
    if isinstance(preds, Tensor):
        return preds.float()
    if isinstance(preds, dict):
        return {name: _fp32(value) for name, value in preds.items()}
    return [_fp32(value) for value in preds] if isinstance(preds, list | tuple) else preds


def _finite(values: list[float]) -> bool:
    return bool(torch.tensor(values).isfinite().all())
