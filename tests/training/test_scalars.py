import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from nightowl.training.scalars import Behind, Sinks, TensorBoardSink, scalar_name


class Memory:
    """A sink that remembers; one that is `broken` fails."""

    def __init__(self, broken: bool = False) -> None:
        self.broken, self.closed = broken, False
        self.written: list[tuple[int, dict[str, float]]] = []

    def write(self, epoch: int, scalars: Mapping[str, float]) -> None:
        if self.broken:
            raise RuntimeError("no\nserver")
        self.written.append((epoch, dict(scalars)))

    def close(self) -> None:
        self.closed = True


def test_a_sink_that_fails_is_said_once_and_the_others_go_on() -> None:
    said: list[str] = []
    good, bad = Memory(), Memory(broken=True)
    sinks = Sinks([bad, good], said.append)
    for epoch in (1, 2):
        sinks.write(epoch, {"val/mAP50": 0.5})
    sinks.close()
    assert said == ["Memory: no more figures are written there: no server; the training goes on"]
    assert [epoch for epoch, _ in good.written] == [1, 2] and good.closed and not bad.closed


def test_a_sink_behind_holds_nothing_up_and_has_everything_when_it_is_closed() -> None:
    memory, answers = Memory(), threading.Event()

    def late() -> Memory:
        assert answers.wait(10)
        return memory

    sink = Behind(late)
    for epoch in (1, 2):
        sink.write(epoch, {"val/mAP50": 0.5})
    assert memory.written == []
    answers.set()
    sink.close()
    assert memory.written == [(1, {"val/mAP50": 0.5}), (2, {"val/mAP50": 0.5})] and memory.closed


def test_what_fails_behind_is_told_at_the_next_call() -> None:
    said: list[str] = []
    sinks = Sinks([Behind(lambda: Memory(broken=True))], said.append)
    sinks.write(1, {})
    sinks.close()
    assert said == ["Behind: no more figures are written there: no server; the training goes on"]


@pytest.mark.parametrize(
    ("column", "name"),
    [("train/box_loss", "train/box_loss"), ("metrics/mAP50-95(B)", "val/mAP50-95"), ("lr/pg0", "lr/pg0")],
)
def test_columns_have_names_that_every_tool_takes(column: str, name: str) -> None:
    assert scalar_name(column) == name


def test_tensorboard_reads_what_was_written_and_sees_a_repeated_epoch_once(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for epochs in ((1, 2, 3), (3, 4)):  # killed after epoch 3 was written, gone on from epoch 2
        sink = TensorBoardSink(tmp_path)
        for epoch in epochs:
            sink.write(epoch, {"val/mAP50": epoch / 10})
        sink.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(event.step, round(event.value, 4)) for event in events.Scalars("val/mAP50")] == [
        (1, 0.1),
        (2, 0.2),
        (3, 0.3),
        (4, 0.4),
    ]


def test_a_training_without_an_epoch_leaves_no_event_file(tmp_path: Path) -> None:
    TensorBoardSink(tmp_path / "none").close()
    assert not (tmp_path / "none").exists()
