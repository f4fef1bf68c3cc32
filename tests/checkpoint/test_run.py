import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nightowl.checkpoint.copies import commit_names, newest_writer
from nightowl.checkpoint.plan import Keep
from nightowl.checkpoint.run import Run
from nightowl.cloud.bucket import FolderBucket
from nightowl.errors import CheckpointError, Fenced
from tests.checkpoint.conftest import IDENTITY, Opened, at, commit, step_of


def test_without_commits_there_is_nothing_to_go_on_from(opened: Opened) -> None:
    run = opened()
    assert run.newest() is None and run.best() is None and not run.is_finished()


def test_the_next_process_goes_on_from_the_newest(opened: Opened, said: list[str]) -> None:
    run = opened()
    for step in (1, 2, 10):
        commit(run, step, finished=step == 10)
    again = opened()
    found = again.newest()
    assert found is not None and found.commit.moment == at(10, finished=True) and step_of(again) == 10
    assert again.is_finished() and said == []


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def exchange(path: Path, before: bytes, after: bytes) -> None:
    assert before in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(before, after))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda data, marker: data.write_bytes(data.read_bytes()[:100]), "expected [0-9]+ bytes, found 100"),
        (lambda data, marker: flip(data), "expected data of sha256 .*, found"),
        (lambda data, marker: data.unlink(), "its data is missing"),
        (lambda data, marker: marker.write_text('{"writer": 1, "cou'), "its commit object is damaged"),
        (lambda data, marker: marker.write_bytes(b""), "its commit object is damaged"),
        (lambda data, marker: exchange(marker, b'"step": 2', b'"step": 6'), "its commit object is damaged"),
        (lambda data, marker: exchange(marker, b'"key": "', b'"key": "f'), "its commit object is damaged"),
        (lambda data, marker: marker.write_bytes(b"[" * 100_000), "its commit object is damaged"),
    ],
    ids=["truncated", "bit-flipped", "missing", "half a commit", "an empty commit", "another step", "another key", "nested"],
)
def test_a_damaged_newest_is_said_in_one_line_and_the_one_before_is_taken(
    opened: Opened, said: list[str], damage: Callable[[Path, Path], object], told: str
) -> None:
    run = opened()
    commit(run, 1)
    commit(run, 2)
    damage(run.local.path("data/w000001-c00000002.pt"), run.local.path("commits/w000001-c00000002.json"))
    assert step_of(opened()) == 1
    (line,) = said
    assert line.startswith(f"checkpoint w000001-c00000002.json in {run.local.url} is passed over: ")
    assert re.search(told, line)


def test_a_commit_that_is_gone_or_under_another_name_does_not_count(opened: Opened, said: list[str]) -> None:
    run = opened()
    for step in (1, 2):
        commit(run, step)
    run.local.path("commits/w000001-c00000002.json").rename(run.local.path("commits/w000001-c00000007.json"))
    assert step_of(opened()) == 1
    assert "its commit object is that of commits/w000001-c00000002.json" in said[0]
    run.local.delete("commits/w000001-c00000007.json")
    assert step_of(opened()) == 1


def test_when_every_commit_is_damaged_there_is_nothing_and_each_was_said(opened: Opened, said: list[str]) -> None:
    run = opened()
    for step in (1, 2):
        commit(run, step)
    for found in run.local.list("data/"):
        flip(run.local.path(found.key))
    assert opened().newest() is None and len(said) == 2


def test_what_is_damaged_here_is_taken_from_the_mirror(opened: Opened, said: list[str], tmp_path: Path) -> None:
    mirror = FolderBucket(tmp_path / "mirror")
    run = opened(mirror)
    commit(run, 1)
    for found in run.local.list():
        mirror.put(found.key, run.local.path(found.key))
    flip(run.local.path("data/w000001-c00000001.pt"))
    assert step_of(opened(mirror)) == 1 and len(said) == 1
    assert step_of(opened(mirror, local="another machine")) == 1


def test_the_newest_and_the_best_are_kept_and_nothing_that_was_never_committed(opened: Opened) -> None:
    run = opened(keep=Keep(2))
    commit(run, 1, epoch=1, reason="epoch", best=True)
    run.local.put("data/w000001-c00000001a.pt", b"half of something")
    for step in range(2, 6):
        commit(run, step)
    assert [commit_name[-10:] for commit_name in commit_names(run.local)] == ["00005.json", "00004.json", "00001.json"]
    assert len(run.local.list("data/")) == 3
    best = run.best()
    assert best is not None and best.state["step"] == 1


def test_a_second_writer_fences_the_first_before_its_next_commit(opened: Opened) -> None:
    first = opened()
    commit(first, 1)
    second = opened()
    assert (first.writer, second.writer) == (1, 2)
    commit(second, 2)
    with pytest.raises(Fenced, match=r"taken over by process \d+ on .* \(writer 2; this process is writer 1\)"):
        commit(first, 3)
    assert step_of(opened()) == 2


def test_a_stale_writer_that_slips_through_is_older_all_the_same(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened()
    second = opened()
    commit(second, 2)
    monkeypatch.setattr("nightowl.checkpoint.copies.require_writer", lambda bucket, writer: None)
    commit(first, 900)
    assert step_of(opened()) == 2


def test_a_writer_on_another_machine_fences_by_the_mirror(opened: Opened, tmp_path: Path) -> None:
    mirror = FolderBucket(tmp_path / "mirror")
    first = opened(mirror)
    second = opened(mirror, local="another machine")
    assert (first.writer, second.writer, newest_writer(mirror)) == (1, 2, 2)
    third = opened(mirror)
    assert third.writer == 3, "above every number in any place"


def test_checkpoints_of_another_training_are_refused_with_what_differs(opened: Opened) -> None:
    opened()
    with pytest.raises(CheckpointError, match=r"checkpoints of another training: train\.lr0 was 0\.01, is 0\.02"):
        opened(identity=IDENTITY.model_copy(update={"params": {"train.lr0": "0.02", "train.epochs": "3"}}))


def test_a_commit_that_was_copied_from_another_training_is_refused(opened: Opened) -> None:
    other = IDENTITY.model_copy(update={"dataset_sha256": "e" * 64})
    theirs: Run = opened(identity=other, local="theirs")
    commit(theirs, 5)
    run = opened()
    for found in theirs.local.list():
        if not found.key.startswith(("identity", "writers")):
            run.local.put(found.key, theirs.local.path(found.key))
    with pytest.raises(CheckpointError, match=r"a state of training .*, expected"):
        run.newest()
