"""What a training tells of itself while it runs: the contract between the training loop and whoever looks on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Start:
    """A training begins, or goes on after `first_epoch - 1` epochs. `optimizer`: the one really used; `notes`: for people."""

    first_epoch: int
    num_epochs: int
    num_batches: int
    num_images: int
    optimizer: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class EpochEnd:
    """An epoch is over and its checkpoints are written. Losses are means over train; figures are on val."""

    epoch: int
    losses: dict[str, float]
    map50: float
    map50_95: float
    is_best: bool
    finished: bool
    last: Path
    best: Path
    history: Path


class Watcher(Protocol):
    """Epochs and batches count from 1. What a method raises ends the training."""

    def started(self, start: Start) -> None: ...

    def batch_done(self, epoch: int, batch: int, loss: float) -> None: ...

    def validating(self, epoch: int) -> None: ...

    def epoch_done(self, end: EpochEnd) -> None: ...
