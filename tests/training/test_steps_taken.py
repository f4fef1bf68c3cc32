from pathlib import Path

from nightowl.training.steps_taken import StepsTaken, steps_taken
from nightowl.training.watch import Start, Unwatched

START = Start(first_epoch=2, first_step=3, num_epochs=4, num_batches=10, num_images=100, optimizer="SGD")


def test_the_step_counts_from_the_first_epoch_and_is_not_written_at_each(tmp_path: Path) -> None:
    now, path = [0.0], tmp_path / "outcomes" / "train.step"
    assert steps_taken(path) is None
    watcher = StepsTaken(Unwatched(), path, lambda: now[0])
    watcher.started(START)
    assert steps_taken(path) == (13, 13)
    for batch, at, noted in ((4, 0.1, 13), (5, 0.25, 15), (6, 0.3, 15), (7, 0.5, 17)):
        now[0] = at
        watcher.batch_done(2, batch, {}, 0.0)
        assert steps_taken(path) == (13, noted), batch


def test_no_step_is_left_out_when_an_epoch_or_the_training_is_over(tmp_path: Path) -> None:
    path = tmp_path / "train.step"
    watcher = StepsTaken(Unwatched(), path, lambda: 0.0)
    watcher.started(START)
    for batch in (4, 10):
        watcher.batch_done(2, batch, {}, 0.0)
    assert steps_taken(path) == (13, 13)
    watcher.validating(2)
    assert steps_taken(path) == (13, 20)
    watcher.batch_done(3, 1, {}, 0.0)
    watcher.close()
    assert steps_taken(path) == (13, 21)


def test_a_step_that_cannot_be_noted_stops_nothing(tmp_path: Path) -> None:
    watcher = StepsTaken(Unwatched(), tmp_path / "train.step")
    watcher.started(START)
    (tmp_path / "train.step").unlink()
    (tmp_path / "train.step").mkdir()
    watcher.batch_done(2, 4, {}, 0.0)
    watcher.close()
