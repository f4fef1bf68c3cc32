import os
from pathlib import Path

from nightowl.checkpoint.commits import COMMITS
from nightowl.checkpoint.identity import Identity
from nightowl.checkpoint.place import checkpoint_run, local_place
from nightowl.checkpoint.standing import saved_since
from nightowl.settings import Settings
from tests.checkpoint.conftest import IDENTITY, commit


def leave(home: Path, lr0: str, step: int, committed_at: float, finished: bool = False) -> Path:
    """A training of that learning rate, saved after `step`; returns where all of them lie."""
    settings = Settings(home=home)
    identity: Identity = IDENTITY.model_copy(update={"params": {"train.lr0": lr0}})
    with checkpoint_run(settings, "demo", identity, lambda line: None) as run:
        commit(run, step, finished=finished, epoch=3)
        os.utime(Path(run.local.root) / COMMITS, (committed_at, committed_at))
    return local_place(settings, "demo")


def test_the_training_that_was_saved_last_is_told_if_it_was_since(tmp_path: Path) -> None:
    leave(tmp_path, "0.02", 7, 1000.0)
    place = leave(tmp_path, "0.01", 12, 2000.0)
    moment = saved_since(place, 1500.0)
    assert moment is not None and (moment.step, moment.epoch) == (12, 3)
    assert saved_since(place, 2500.0) is None, "of another night"


def test_a_finished_training_and_none_have_nothing_to_go_on_from(tmp_path: Path) -> None:
    assert saved_since(tmp_path / "absent", 0.0) is None
    assert saved_since(leave(tmp_path, "0.01", 12, 2000.0, finished=True), 0.0) is None
