from pathlib import Path

import pytest

from nightowl.training.commits import BEST, HISTORY, LAST, commit, is_finished, latest


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path


def committed(run: Path, epoch: int, finished: bool = False) -> None:
    files = tuple(run / "work" / name for name in (LAST, BEST, HISTORY))
    for file in files:
        file.write_text(f"{file.name} after {epoch}")
    commit(run, epoch, best_epoch=1, finished=finished, files=files)


def test_without_commits_there_is_none(run: Path) -> None:
    assert latest(run) is None
    assert latest(run / "absent") is None
    assert not is_finished(run)


def test_the_newest_commit_is_taken_with_the_files_of_its_epoch(run: Path) -> None:
    for epoch in (1, 2, 10):
        committed(run, epoch, finished=epoch == 10)
    found = latest(run)
    assert found is not None
    assert (found[0].epoch, found[0].best_epoch, found[0].finished) == (10, 1, True)
    assert (found[1] / LAST).read_text() == "last.pt after 10"
    assert is_finished(run)


def test_only_two_commits_are_kept(run: Path) -> None:
    for epoch in range(1, 6):
        committed(run, epoch)
    assert sorted(path.name for path in run.glob("epoch-*")) == ["epoch-0004", "epoch-0005"]


@pytest.mark.parametrize("damage", ["truncated", "a file gone", "marker gone", "marker half-written"])
def test_a_damaged_commit_falls_back_to_the_one_before(run: Path, damage: str) -> None:
    committed(run, 1)
    committed(run, 2)
    newest = run / "epoch-0002"
    if damage == "truncated":
        (newest / LAST).write_text("las")
    elif damage == "a file gone":
        (newest / BEST).unlink()
    elif damage == "marker gone":
        (newest / "commit.json").unlink()
    else:
        (newest / "commit.json").write_text('{"epoch": 2, "bes')
    found = latest(run)
    assert found is not None and found[0].epoch == 1


def test_a_commit_that_cannot_be_written_leaves_the_one_before(run: Path) -> None:
    committed(run, 1)
    with pytest.raises(FileNotFoundError):
        commit(run, 2, 1, False, (run / "work" / "absent.pt",))
    found = latest(run)
    assert found is not None and found[0].epoch == 1
    assert [path.name for path in run.iterdir() if path.name.startswith(".")] == []
