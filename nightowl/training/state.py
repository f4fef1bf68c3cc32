"""The whole state of a training, as one dictionary of tensors and plain values that `torch.load(weights_only=True)` opens.

Randomness is not in it: what a step draws is a function of (seed, epoch, step, rank), see `seed_step`, and what a sample draws
is the loader's, a function of (seed, epoch, sample). So there is no random state that could be lost, and ranks may change.
"""

import hashlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nightowl.errors import StageFailed
from nightowl.training.compute import Compute
from nightowl.training.progress import Progress

State = dict[str, object]
FORMAT = 1
_OF_TIME = frozenset({"seconds", "row_seconds", "step_seconds", "waited_seconds"})


@dataclass
class Learner:
    """What a training changes, with what it computes in. `best` is the EMA of the best epoch, fp16 on the CPU."""

    model: torch.nn.Module
    ema: Any  # ultralytics' ModelEMA: .ema (a module), .updates, .update(model)
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    criterion: Any  # see yolo.Criterion
    compute: Compute
    description: Mapping[str, object]  # the architecture, from which the modules can be built again
    resolved: Mapping[str, object]  # hyper-parameters that `auto` stands for
    best: dict[str, Tensor] | None = None


def capture(learner: Learner, progress: Progress) -> State:
    """The state as it is now, on the CPU and independent of what is trained next."""
    state: State = {
        "format": FORMAT,
        "model": learner.model.state_dict(),
        "ema": learner.ema.ema.state_dict(),
        "ema_updates": learner.ema.updates,
        "optimizer": learner.optimizer.state_dict(),
        "scaler": learner.scaler.state_dict(),
        "criterion_updates": learner.criterion.updates,
        "compute": learner.compute.model_dump(),
        "resolved": dict(learner.resolved),
        "description": dict(learner.description),
        "best": learner.best,
        "progress": progress.model_dump(mode="json"),
    }
    copied: State = _copied(state)
    return copied


def restore(state: State, learner: Learner) -> Progress:
    """Put `state` into the learner; returns how far it had come.

    Raises:
        StageFailed: when it is a state of another format or of another model.
    """
    if state.get("format") != FORMAT:
        raise StageFailed(f"checkpoint: expected a state of format {FORMAT}, found {state.get('format')}; train anew")
    values: Any = state
    try:
        learner.model.load_state_dict(values["model"])
        learner.ema.ema.load_state_dict(values["ema"])
        learner.optimizer.load_state_dict(values["optimizer"])
        learner.scaler.load_state_dict(values["scaler"])
    except (KeyError, RuntimeError, ValueError) as error:
        raise StageFailed(f"checkpoint: not of this model: {' '.join(str(error).split())[:300]}; train anew") from error
    learner.ema.updates = values["ema_updates"]
    learner.criterion.updates = values["criterion_updates"]
    learner.best = values["best"]
    return progress_of(state)


def progress_of(state: State) -> Progress:
    return Progress.model_validate(state["progress"])


def compute_of(state: State) -> Compute:
    return Compute.model_validate(state["compute"])


def seed_step(seed: int, epoch: int, step: int, rank: int) -> None:
    """Set every generator for one step: whatever ran before it in this process, or in another, has no part in it."""
    mixed = int.from_bytes(hashlib.blake2b(repr((seed, epoch, step, rank)).encode(), digest_size=8).digest(), "little")
    random.seed(mixed)
    np.random.seed(mixed % 2**32)
    torch.manual_seed(mixed % 2**63)


def digest(state: State) -> str:
    """SHA-256 over every value of a state but times: equal for trainings that came to the same."""
    total = hashlib.sha256()
    for part in _parts(state):
        total.update(part)
    return total.hexdigest()


def _parts(value: object) -> Iterator[bytes]:
    if isinstance(value, Tensor):
        yield f"{value.dtype}{tuple(value.shape)}".encode()
        yield value.contiguous().view(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b""
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            if key not in _OF_TIME:
                yield repr(key).encode()
                yield from _parts(value[key])
    elif isinstance(value, list | tuple):
        yield f"[{len(value)}".encode()
        for each in value:
            yield from _parts(each)
    else:
        yield repr(value).encode()


def _copied(value: Any) -> Any:
    """A deep copy with every tensor on the CPU, in memory of its own."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_copied(each) for each in value) if isinstance(value, tuple) else [_copied(each) for each in value]
    return value
