"""A training as people see it: on a terminal a bar, elsewhere one line an epoch. All on standard error, as progress is."""

import time
from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from nightowl.training.memory_use import memory_in_words
from nightowl.training.watch import EpochEnd, Start

Clock = Callable[[], float]
Memory = Callable[[], str]
_SHORT = {"box_loss": "box", "cls_loss": "cls", "dfl_loss": "dfl"}


class Display:
    """A watcher that shows; to be used as a context, so that the terminal is left in order.

    `memory` says in words what the training takes of it.
    """

    def __init__(
        self,
        console: Console | None = None,
        clock: Clock = time.monotonic,
        memory: Memory = partial(memory_in_words, "cpu"),  # noqa: B008
    ) -> None:
        self._console = console or Console(stderr=True)
        self._clock, self._memory = clock, memory
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("train", total=None, state="")
        self._start: Start | None = None
        self._begun = 0.0  # when this process began its first epoch
        self._epoch_begun = 0.0
        self._waited = 0.0  # seconds that this epoch's steps waited for their images
        self._stepping: float | None = None  # seconds that this epoch's steps took
        self._map50: float | None = None

    def __enter__(self) -> "Display":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def note(self, text: str) -> None:
        """One line, kept on the screen."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def started(self, start: Start) -> None:
        self._start = start
        self._begun = self._epoch_begun = self._clock()
        self._bar.update(self._task, total=start.num_epochs * start.num_batches)
        going_on = start.first_epoch > 1 or start.first_step > 0
        again = f", going on from epoch {start.first_epoch}, batch {start.first_step + 1}" if going_on else ""
        self.note(f"train: {start.num_images} images, {start.num_epochs} epochs, {start.optimizer}{again}")
        for note in start.notes:
            self.note(f"train: {note}")

    def batch_done(self, epoch: int, batch: int, losses: dict[str, float], waited_seconds: float) -> None:
        start = self._started()
        here = batch - self._first_batch(epoch)
        seconds = max(self._clock() - self._epoch_begun, 1e-9)
        self._waited += waited_seconds
        rate = here / start.num_batches * start.num_images / seconds
        done = (epoch - 1) * start.num_batches + batch
        pace = f"{rate:.0f} images/s  waiting for data {self._waited / seconds:.0%}"
        state = f"loss {sum(losses.values()):.2f}  {pace}  {self._memory()}"
        self._show(epoch, f"{state}  ETA {self._remaining(done / start.num_batches)}{self._figure()}", done)

    def validating(self, epoch: int) -> None:
        self._stepping = self._clock() - self._epoch_begun
        self._show(epoch, f"validating{self._figure()}", epoch * self._started().num_batches)

    def epoch_done(self, end: EpochEnd) -> None:
        start, now = self._started(), self._clock()
        losses = " ".join(f"{_SHORT.get(name, name)} {value:.2f}" for name, value in end.losses.items())
        share = 1 - self._first_batch(end.epoch) / start.num_batches
        seconds = max(now - self._epoch_begun, 1e-9)
        rate = share * start.num_images / seconds
        remaining = "0:00" if end.finished else self._remaining(end.epoch)
        figures = end.figures
        waiting = f"  waiting for data {self._waited / self._stepping:.0%}" if self._stepping else ""
        self._map50, self._epoch_begun, self._waited, self._stepping = figures.map50, now, 0.0, None
        self.note(
            f"epoch {end.epoch}/{start.num_epochs}  {losses}  val mAP50 {figures.map50:.3f} mAP50-95 {figures.map50_95:.3f}"
            f"{' best' if end.is_best else ''}  {rate:.0f} images/s{waiting}  ETA {remaining}"
        )
        if end.finished and end.epoch < start.num_epochs:
            self.note(f"train: no better epoch for long (patience); ended after {end.epoch} of {start.num_epochs} epochs")

    def _show(self, epoch: int, state: str, done: int) -> None:
        self._bar.update(self._task, description=f"epoch {epoch}/{self._started().num_epochs}", completed=done, state=state)

    def _first_batch(self, epoch: int) -> int:
        """Batches of `epoch` that another process did before this one."""
        start = self._started()
        return start.first_step if epoch == start.first_epoch else 0

    def _figure(self) -> str:
        return "" if self._map50 is None else f"  val mAP50 {self._map50:.3f}"

    def _remaining(self, epochs_done: float) -> str:
        """Time to go as `minutes:seconds`, from the pace of the epochs that this process did; `?` before its first step."""
        start = self._started()
        here = epochs_done - (start.first_epoch - 1) - start.first_step / start.num_batches
        if here * start.num_batches < 0.5:
            return "?"
        return _clock_text((start.num_epochs - epochs_done) * (self._clock() - self._begun) / here)

    def _started(self) -> Start:
        assert self._start is not None, "started comes first"
        return self._start


def _clock_text(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
