"""What a training tells of itself while it runs: the contract between the training loop and whoever looks on."""

from dataclasses import dataclass
from typing import Protocol

from nightowl.training.progress import Figures


@dataclass(frozen=True)
class Start:
    """A training begins, or goes on at `first_step` of `first_epoch`. `optimizer`: the one really used; `notes`: for people."""

    first_epoch: int
    first_step: int
    num_epochs: int
    num_batches: int
    num_images: int
    optimizer: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class EpochEnd:
    """An epoch is over. Losses are means over train; figures are on val. `rates`: of each parameter group."""

    epoch: int
    losses: dict[str, float]
    rates: dict[str, float]
    figures: Figures
    is_best: bool
    finished: bool


class Watcher(Protocol):
    """Epochs and batches count from 1."""

    def started(self, start: Start) -> None: ...

    def batch_done(self, epoch: int, batch: int, losses: dict[str, float], waited_seconds: float) -> None:
        """`waited_seconds`: how long the step waited for its images."""

    def validating(self, epoch: int) -> None: ...

    def epoch_done(self, end: EpochEnd) -> None: ...

    def note(self, text: str) -> None:
        """One line that people should see: less memory than hoped for, a step that was skipped."""


class Unwatched:
    """A watcher that nobody is behind: a rank's that is not the first."""

    def started(self, start: Start) -> None:
        return

    def batch_done(self, epoch: int, batch: int, losses: dict[str, float], waited_seconds: float) -> None:
        return

    def validating(self, epoch: int) -> None:
        return

    def epoch_done(self, end: EpochEnd) -> None:
        return

    def note(self, text: str) -> None:
        return
