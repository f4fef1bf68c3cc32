"""How far a training has come, as one frozen record: each event makes the next one. It knows neither torch nor files.

Epochs and steps count from 0 as positions, epochs from 1 where people read them.
"""

import math

from pydantic import Field

from nightowl.records import Record

MAX_SKIPPED_IN_ROW = 3  # as many as ultralytics' recoveries from NaN


class Shrink(Record):
    """Memory did not suffice: from here on a forward pass takes `after` images instead of `before`."""

    epoch: int
    step: int
    phase: str
    before: int
    after: int


class World(Record):
    """From this step on the training ran on so many ranks."""

    epoch: int
    step: int
    world_size: int


class Figures(Record):
    """What the EMA weights are worth on val. `precision` is None when nothing was found at all."""

    precision: float | None
    recall: float
    map50: float
    map50_95: float

    @property
    def fitness(self) -> float:
        """By which the best epoch is chosen: mAP50-95 alone, as in the pinned ultralytics."""
        return self.map50_95


class Progress(Record):
    """Everything of a training's state that is no tensor.

    `epoch`, `step`: what comes next. `mean_losses`: of this epoch so far, by name. `rows`: the results table, without times;
    `row_seconds`: when each row came, since the training began, over all restarts. `step_seconds`: what the steps took, of
    which `waited_seconds` were for their images (those of rank 0). `leading_*`: what patience counts from.
    `skipped`: steps (epoch, step) that were not taken, their loss being no number.
    """

    epoch: int = 0
    step: int = 0
    mean_losses: dict[str, float] = Field(default_factory=dict)
    rows: tuple[dict[str, float | None], ...] = ()
    row_seconds: tuple[float, ...] = ()
    seconds: float = 0.0
    step_seconds: float = 0.0
    waited_seconds: float = 0.0
    best_fitness: float | None = None
    best_epoch: int = 0
    leading_fitness: float = 0.0
    leading_epoch: int = 0
    skipped: tuple[tuple[int, int], ...] = ()
    num_skipped_in_row: int = 0
    micro_batch: int
    val_batch: int
    shrunk: tuple[Shrink, ...] = ()
    worlds: tuple[World, ...] = ()
    finished: bool = False

    def stepped(self, losses: dict[str, float]) -> "Progress":
        """After a step with these loss items; the mean is over the steps that were taken."""
        taken = self.step - sum(epoch == self.epoch for epoch, _ in self.skipped)
        mean = {name: (self.mean_losses.get(name, 0.0) * taken + value) / (taken + 1) for name, value in losses.items()}
        return self.model_copy(update={"step": self.step + 1, "mean_losses": mean, "num_skipped_in_row": 0})

    def stepped_over(self) -> "Progress":
        """After a step that was not taken."""
        skipped = (*self.skipped, (self.epoch, self.step))
        return self.model_copy(
            update={"step": self.step + 1, "skipped": skipped, "num_skipped_in_row": self.num_skipped_in_row + 1}
        )

    def took(self, waited: float, computed: float) -> "Progress":
        """After a step whose images were waited for, and which then was computed, so many seconds."""
        return self.model_copy(
            update={
                "waited_seconds": self.waited_seconds + waited,
                "step_seconds": self.step_seconds + waited + computed,
            }
        )

    def validated(self, figures: Figures, rates: dict[str, float], num_epochs: int, patience: int) -> "Progress":
        """After an epoch: its row, whether it is the best, and whether it was the last.

        An equal fitness is taken as better for the weights (the newer ones), but does not renew patience.
        """
        epoch, fitness = self.epoch + 1, figures.fitness
        best = self.best_fitness is None or fitness >= self.best_fitness
        leads = fitness > self.leading_fitness or self.leading_fitness == 0
        leading_epoch = epoch if leads else self.leading_epoch
        return self.model_copy(
            update={
                "epoch": epoch,
                "step": 0,
                "mean_losses": {},
                "rows": (*self.rows, _row(epoch, self.mean_losses, figures, rates)),
                "row_seconds": (*self.row_seconds, self.seconds),
                "best_fitness": fitness if best else self.best_fitness,
                "best_epoch": epoch if best else self.best_epoch,
                "leading_fitness": fitness if leads else self.leading_fitness,
                "leading_epoch": leading_epoch,
                "finished": epoch >= num_epochs or epoch - leading_epoch >= patience,
            }
        )

    def halved(self, phase: str) -> "Progress | None":
        """With half the images a forward pass in training, or in validation; None when there is one already."""
        field = "val_batch" if phase == "validation" else "micro_batch"
        before = getattr(self, field)
        if before == 1:
            return None
        after = math.ceil(before / 2)
        shrink = Shrink(epoch=self.epoch, step=self.step, phase=phase, before=before, after=after)
        return self.model_copy(update={field: after, "shrunk": (*self.shrunk, shrink)})

    def in_world(self, world_size: int) -> "Progress":
        """Going on with so many ranks; said only where it changes."""
        if self.worlds and self.worlds[-1].world_size == world_size:
            return self
        world = World(epoch=self.epoch, step=self.step, world_size=world_size)
        return self.model_copy(update={"worlds": (*self.worlds, world)})


def _row(epoch: int, losses: dict[str, float], figures: Figures, rates: dict[str, float]) -> dict[str, float | None]:
    """One row in ultralytics' column names."""
    return {
        "epoch": epoch,
        **{f"train/{name}": round(value, 5) for name, value in losses.items()},
        "metrics/precision(B)": figures.precision,
        "metrics/recall(B)": figures.recall,
        "metrics/mAP50(B)": figures.map50,
        "metrics/mAP50-95(B)": figures.map50_95,
        **{f"lr/{name}": rate for name, rate in rates.items()},
    }


def results_csv(progress: Progress) -> str:
    """The results table as ultralytics writes it, so that what reads its results.csv reads this; unknown is nan."""
    lines, header = list[str](), ""
    for row, seconds in zip(progress.rows, progress.row_seconds, strict=True):
        columns = {"epoch": row["epoch"], "time": seconds, **row}
        lines.append(",".join("nan" if value is None else f"{value:.6g}" for value in columns.values()))
        header = ",".join(columns)
    return "".join(f"{line}\n" for line in [header, *lines]) if lines else ""
