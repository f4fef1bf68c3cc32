import io

import pytest
from rich.console import Console

from nightowl.training.display import Display
from nightowl.training.progress import Figures
from nightowl.training.watch import EpochEnd, Start

LOSSES = {"box_loss": 1.6, "cls_loss": 3.0}
START = Start(first_epoch=1, first_step=0, num_epochs=3, num_batches=10, num_images=80, optimizer="AdamW")


class Hands:
    """A clock moved by hand, in seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def an_end(epoch: int, finished: bool = False, is_best: bool = False) -> EpochEnd:
    losses = {"box_loss": 1.234, "cls_loss": 2.3, "dfl_loss": 1.1}
    figures = Figures(precision=0.5, recall=0.5, map50=0.41, map50_95=0.22)
    return EpochEnd(epoch, losses, {"pg0": 0.01}, figures, is_best, finished)


def show(terminal: bool, start: Start = START) -> tuple[Display, Hands, io.StringIO]:
    out, clock = io.StringIO(), Hands()
    display = Display(Console(file=out, force_terminal=terminal, width=160), clock, lambda: "memory 1.2 GB")
    display.started(start)
    return display, clock, out


def test_elsewhere_an_epoch_is_one_line() -> None:
    display, clock, out = show(terminal=False)
    with display:
        for batch in range(1, 11):
            clock.now += 0.4
            display.batch_done(1, batch, LOSSES, 0.1)
        display.validating(1)
        clock.now += 1
        display.epoch_done(an_end(1, is_best=True))
    assert out.getvalue().splitlines() == [
        "train: 80 images, 3 epochs, AdamW",
        "epoch 1/3  box 1.23 cls 2.30 dfl 1.10  val mAP50 0.410 mAP50-95 0.220 best  16 images/s  "
        "waiting for data 25%  ETA 0:10",
    ]


def test_a_resumed_training_counts_the_pace_of_its_own_epochs() -> None:
    display, clock, out = show(
        False, Start(first_epoch=3, first_step=5, num_epochs=5, num_batches=10, num_images=80, optimizer="SGD")
    )
    clock.now += 60
    display.epoch_done(an_end(3))
    first, line = out.getvalue().splitlines()
    assert first.endswith("SGD, going on from epoch 3, batch 6")
    assert line.startswith("epoch 3/5 ") and line.endswith("1 images/s  ETA 4:00")


def test_an_early_end_is_said() -> None:
    display, _, out = show(terminal=False)
    display.epoch_done(an_end(2, finished=True))
    assert "ETA 0:00" in out.getvalue()
    assert out.getvalue().splitlines()[-1] == "train: no better epoch for long (patience); ended after 2 of 3 epochs"


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:12"), (4, "1:56"), (400, "3:13:20")])
def test_on_a_terminal_a_bar_says_how_long_it_will_take(seconds: float, text: str) -> None:
    display, clock, out = show(terminal=True)
    with display:
        clock.now += seconds
        display.batch_done(1, 1, LOSSES, seconds / 4)
        display._bar.refresh()
    assert "epoch 1/3" in out.getvalue()
    assert f"loss 4.60  {8 / seconds:.0f} images/s  waiting for data 25%  memory 1.2 GB  ETA {text}" in out.getvalue()


def test_before_its_first_step_nobody_knows_how_long_it_will_take() -> None:
    display, clock, out = show(
        False, Start(first_epoch=3, first_step=10, num_epochs=5, num_batches=10, num_images=80, optimizer="SGD")
    )
    clock.now += 60
    display.epoch_done(an_end(3))
    assert out.getvalue().splitlines()[1].endswith("ETA ?")
