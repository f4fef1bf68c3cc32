"""What a training does of itself: steps that cannot be taken, an end by patience; and stops amid them change neither."""

import math
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from nightowl.errors import Preempted, StageFailed
from nightowl.training.loop import Training
from nightowl.training.progress import Figures
from nightowl.training.state import capture, digest
from tests.training.standins import FolderStore, Memory, a_plan, a_training

FITNESS = (0.3, 0.5, 0.4, 0.45, 0.6)  # of the epochs: with a patience of two the fourth is the last
Places = Collection[tuple[int, int]]


class Scripted:
    """A validator with known figures."""

    def __init__(self, epoch: Callable[[], int]) -> None:
        self._epoch = epoch

    def measure(self, *_: object, **__: object) -> Figures:
        fitness = FITNESS[self._epoch()]
        return Figures(precision=0.5, recall=0.5, map50=fitness, map50_95=fitness)


class AfterSteps:
    """Asks to stop in the step of this number, from 1."""

    def __init__(self, number: int) -> None:
        self._left = number

    def reason(self) -> str | None:
        self._left -= 1
        return "asked to stop" if self._left <= 0 else None


def make(no_number_at: Places, store: FolderStore | None = None, stop: AfterSteps | None = None) -> Training:
    """A training of five epochs of three steps, whose loss is no number at some of them (epoch, step)."""
    here = [(0, 0)]

    def fault(phase: str, epoch: int, step: int) -> None:
        here[0] = (epoch, step)

    plan = a_plan(num_images=12, epochs=len(FITNESS), patience_epochs=2, multi_scale=0.5)
    training = a_training(plan, store=store, stop=stop, fault=fault)
    criterion: Any = training.learner.criterion

    class Poisoned(type(criterion)):  # type: ignore[misc]
        def __call__(self, *given: object) -> tuple[Tensor, Tensor]:
            loss, found = super().__call__(*given)
            factor = math.nan if here[0] in no_number_at else 1.0
            return loss * factor, found * factor

    criterion.__class__ = Poisoned
    training.validator = Scripted(lambda: training.progress.epoch)  # type: ignore[assignment]
    return training


def end_of(training: Training) -> str:
    return digest(capture(training.learner, training.train()))


def watcher(training: Training) -> Memory:
    assert isinstance(training.watcher, Memory)
    return training.watcher


def test_a_step_whose_loss_is_no_number_is_left_out_and_said() -> None:
    training = make({(1, 1)})
    progress = training.train()
    assert progress.skipped == ((1, 1),)
    assert watcher(training).notes[-1] == "epoch 2, batch 2: the loss or its gradient is no number; this step is not taken"
    assert all(math.isfinite(value) for end in watcher(training).ends for value in end.losses.values())


def test_a_loss_that_stays_no_number_ends_the_training_with_what_to_change() -> None:
    with pytest.raises(
        StageFailed, match=r"no number in 4 steps on end, up to epoch 2, batch 2: .* lower train\.lr0 \(0\.001\)"
    ):
        make({(0, 1), (0, 2), (1, 0), (1, 1)}).train()


def test_three_on_end_are_borne() -> None:
    assert make({(0, 1), (0, 2), (1, 0)}).train().finished


def test_it_ends_when_patience_does() -> None:
    training = make(())
    progress = training.train()
    assert (progress.epoch, progress.best_epoch, progress.finished) == (4, 2, True)
    assert [end.finished for end in watcher(training).ends] == [False, False, False, True]


def test_stopped_every_other_step_it_leaves_out_the_same_and_ends_at_the_same_epoch(tmp_path: Path) -> None:
    """Before, between and after such steps: an epoch has three, so that a stop comes to each of them."""
    no_number_at = {(0, 2), (1, 0), (2, 1)}
    expected, store, num_stops = end_of(make(no_number_at)), FolderStore(tmp_path, every=100), 0
    while True:
        again = make(no_number_at, store, AfterSteps(2 if num_stops else 4))  # the rehearsal takes two
        try:
            assert end_of(again) == expected
            break
        except Preempted:
            num_stops += 1
    assert num_stops == 6
    assert again.progress.skipped == ((0, 2), (1, 0), (2, 1)) and again.progress.epoch == 4
