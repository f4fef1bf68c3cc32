"""Killed at any moment, any number of times, on one rank and on two: the end is that of the undisturbed training."""

import json
import random
import time
from pathlib import Path

import pytest

from tests.training import trials
from tests.training.processes import Work, run, start

NUM_KILLS = 6


def outcome(folder: Path) -> dict[str, object]:
    done: dict[str, object] = json.loads((folder / "done.json").read_text())
    return done


def new(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


@pytest.fixture(scope="module", params=[1, 2], ids=["one rank", "two ranks"])
def undisturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, object]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert run(trials.whole, folder, request.param) == [0] * request.param, errors(folder)
    return request.param, outcome(folder)


def errors(folder: Path) -> str:
    return "\n".join(path.read_text() for path in folder.glob("error-*.txt"))


def events(folder: Path) -> int:
    path = folder / "events"
    return path.stat().st_size if path.exists() else 0


def kill_within(folder: Path, world_size: int, moments: random.Random) -> bool:
    """Start the training, kill all its ranks one by one after some forward passes; whether they were still at it."""
    before, wanted = events(folder), moments.randint(1, 6 * world_size)
    processes = start(trials.whole, folder, world_size)
    while events(folder) - before < wanted and all(process.is_alive() for process in processes):
        time.sleep(0.002)
    time.sleep(moments.uniform(0, 0.05))
    alive = all(process.is_alive() for process in processes)
    for process in moments.sample(processes, world_size):
        process.kill()
    for process in processes:
        process.join()
    return alive


def test_random_kills_change_nothing(tmp_path: Path, undisturbed: tuple[int, dict[str, object]]) -> None:
    world_size, expected = undisturbed
    moments, met = random.Random(world_size), 0
    while met < NUM_KILLS:
        met += kill_within(tmp_path, world_size, moments)
        if (tmp_path / "done.json").exists():  # it came to its end between two kills: once more from the start
            assert outcome(tmp_path)["digest"] == expected["digest"]
            for path in tmp_path.iterdir():
                path.unlink()
    assert run(trials.whole, tmp_path, world_size) == [0] * world_size, errors(tmp_path)
    assert outcome(tmp_path)["digest"] == expected["digest"]
    assert outcome(tmp_path)["rows"] == expected["rows"]


@pytest.mark.parametrize("work", [trials.stopped_at_step_4, trials.stopped_in_validation])
def test_a_stop_that_one_rank_hears_saves_the_same_step_on_all(
    tmp_path: Path, undisturbed: tuple[int, dict[str, object]], work: Work
) -> None:
    world_size, expected = undisturbed
    assert run(work, tmp_path, world_size) == [75] * world_size, errors(tmp_path)
    assert run(trials.whole, tmp_path, world_size) == [0] * world_size, errors(tmp_path)
    assert outcome(tmp_path)["digest"] == expected["digest"]


def test_a_request_for_a_state_that_one_host_hears_is_answered_once_and_changes_nothing(
    tmp_path: Path, undisturbed: tuple[int, dict[str, object]]
) -> None:
    world_size, expected = undisturbed
    assert run(trials.asked_to_save, tmp_path, world_size) == [0] * world_size, errors(tmp_path)
    saved = json.loads((tmp_path / "saved.json").read_text())
    assert [reason for _, reason in saved] == ["epoch", "time", "epoch", "epoch"]
    assert saved[1][0] == saved[0][0] + 1, "at the very step"
    assert outcome(tmp_path)["digest"] == expected["digest"]


def test_another_number_of_ranks_goes_on_and_is_recorded(tmp_path: Path) -> None:
    folder = new(tmp_path, "moved")
    assert run(trials.stopped_at_step_4, folder, 2) == [75, 75], errors(folder)
    assert run(trials.whole, folder, 1) == [0], errors(folder)
    worlds = outcome(folder)["worlds"]
    assert worlds == [{"epoch": 0, "step": 0, "world_size": 2}, {"epoch": 1, "step": 2, "world_size": 1}]
