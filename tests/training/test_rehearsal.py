"""What would fail at hour five fails before the first step, and what does not fail leaves no trace."""

from collections.abc import Callable

import pytest
import torch

import nightowl.training.rehearsal as rehearsal
from nightowl.errors import Preempted, StageFailed
from nightowl.training import loop
from nightowl.training.loop import Training
from nightowl.training.state import capture, digest
from nightowl.training.stopping import StopSource
from tests.training.standins import Memory, a_plan, a_training


def make(fault: Callable[[str, int, int], None] = loop.no_fault, stop: StopSource | None = None) -> Training:
    return a_training(a_plan(num_images=8, epochs=1), fault=fault, stop=stop)


def seen(training: Training) -> Memory:
    assert isinstance(training.watcher, Memory)
    return training.watcher


def test_it_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    rehearsed = make()
    expected = digest(capture(rehearsed.learner, rehearsed.train()))
    assert seen(rehearsed).notes[0].startswith("rehearsal: 2 steps, validation and checkpoint tried in ")
    monkeypatch.setattr(loop, "rehearse", lambda training: None)
    straight = make()
    assert digest(capture(straight.learner, straight.train())) == expected
    assert len(seen(straight).losses) == len(seen(rehearsed).losses) == 2, "its steps are not shown as steps"


@pytest.mark.parametrize("phase", ["training", "validation"])
def test_what_cannot_work_ends_before_the_first_step(phase: str) -> None:
    def fault(here: str, epoch: int, step: int) -> None:
        if here == phase:
            raise RuntimeError(f"{phase} cannot work")

    training = make(fault)
    with pytest.raises(RuntimeError, match=f"{phase} cannot work"):
        training.train()
    assert seen(training).losses == []


def test_a_state_that_does_not_come_back_ends_before_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(data: bytes) -> dict[str, object]:
        return {**from_bytes(data), "ema_updates": -1}

    from_bytes = rehearsal.from_bytes
    monkeypatch.setattr(rehearsal, "from_bytes", altered)
    training = make()
    with pytest.raises(StageFailed, match="a state read back is not the state that was written"):
        training.train()
    assert seen(training).losses == []


@pytest.mark.parametrize(("phase", "batch"), [("training", "micro_batch"), ("validation", "val_batch")])
def test_memory_that_runs_out_in_it_is_known_before_the_first_step(phase: str, batch: str) -> None:
    def fault(here: str, epoch: int, step: int) -> None:
        if here == phase and not met:
            met.append(here)
            raise torch.OutOfMemoryError("CUDA out of memory")

    met: list[str] = []
    training = make(fault)
    before = getattr(training.progress, batch)
    progress = training.train()
    assert getattr(progress, batch) == before // 2
    assert [(shrunk.epoch, shrunk.step, shrunk.phase) for shrunk in progress.shrunk] == [(0, 0, phase)]


class Asks:
    def reason(self) -> str | None:
        return "asked to stop"


def test_asked_to_stop_meanwhile_it_does() -> None:
    training = make(stop=Asks())
    with pytest.raises(Preempted, match="before the first step"):
        training.train()
    assert seen(training).losses == []
