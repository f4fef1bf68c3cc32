"""A hundred kills over one training, on one rank and on two."""

import random
from pathlib import Path

import pytest

from tests.training import trials
from tests.training.processes import run
from tests.training.test_resume import errors, kill_within, outcome

NUM_KILLS = 100


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("world_size", [1, 2])
def test_a_hundred_random_kills_change_nothing(tmp_path: Path, world_size: int) -> None:
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    undisturbed.mkdir()
    killed.mkdir()
    assert run(trials.whole, undisturbed, world_size) == [0] * world_size, errors(undisturbed)
    moments, met = random.Random(world_size), 0
    while met < NUM_KILLS:
        met += kill_within(killed, world_size, moments)
        if (killed / "done.json").exists():  # it came to its end between two kills: once more from the start
            assert outcome(killed)["digest"] == outcome(undisturbed)["digest"]
            for path in killed.iterdir():
                path.unlink()
    assert run(trials.whole, killed, world_size) == [0] * world_size, errors(killed)
    assert outcome(killed)["digest"] == outcome(undisturbed)["digest"]
    assert outcome(killed)["rows"] == outcome(undisturbed)["rows"]
