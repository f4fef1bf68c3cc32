import os
import subprocess
import sys
from pathlib import Path

import pytest

from nightowl.checkpoint.commits import COMMITS
from nightowl.checkpoint.identity import Identity
from nightowl.checkpoint.place import checkpoint_run, places
from nightowl.cloud.bucket import Bucket, FolderBucket
from nightowl.cloud.s3_bucket import S3Bucket
from nightowl.errors import SettingsError, StageFailed
from nightowl.settings import Settings
from tests.checkpoint.conftest import IDENTITY, commit


def settings(home: Path, **values: object) -> Settings:
    return Settings.model_validate({"home": home} | values)


def other(lr0: str) -> Identity:
    return IDENTITY.model_copy(update={"params": {"train.lr0": lr0}})


def leave(home: Path, identity: Identity, step: int, finished: bool = False) -> Path:
    """A training that ended, or was interrupted, after `step`."""
    with checkpoint_run(settings(home), "demo", identity, lambda line: None) as run:
        commit(run, step, finished=finished)
        return run.local.root


def test_checkpoints_lie_in_the_home_or_where_the_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    assert places(settings(tmp_path), "demo")[0].url == f"{tmp_path}/checkpoints/demo/"
    local, mirror = places(settings(tmp_path, checkpoints="/data/checkpoints"), "demo")
    assert (local.url, mirror) == ("/data/checkpoints/demo/", None)
    local, mirror = places(settings(tmp_path, checkpoints="s3://bucket/nights"), "demo")
    assert isinstance(mirror, S3Bucket) and mirror.url == "s3://bucket/nights/demo/"
    assert local.url == f"{tmp_path}/checkpoints/demo/"


def test_an_address_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="gs://bucket: expected a folder or s3://BUCKET/PREFIX"):
        places(settings(tmp_path, checkpoints="gs://bucket"), "demo")


def test_a_training_finds_its_own_checkpoints_again(tmp_path: Path) -> None:
    leave(tmp_path, IDENTITY, 7)
    with checkpoint_run(settings(tmp_path), "demo", IDENTITY, lambda line: None) as run:
        found = run.newest()
    assert found is not None and found.state["step"] == 7


def test_why_an_interrupted_training_is_not_gone_on_from_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    leave(tmp_path, other("0.02"), 7)
    with checkpoint_run(settings(tmp_path), "demo", other("0.01"), said.append) as run:
        assert run.newest() is None
    assert said == ["a training interrupted after step 7 is not gone on from: train.lr0 was 0.02, is 0.01"]


def test_a_second_process_is_refused_while_the_first_trains(tmp_path: Path) -> None:
    lock = leave(tmp_path, IDENTITY, 1) / ".lock"
    hold = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None and first.stdout.readline() == b"held\n"
        with (
            pytest.raises(StageFailed, match="is running in another process"),
            checkpoint_run(settings(tmp_path), "demo", IDENTITY, lambda line: None),
        ):
            pass
        first.communicate()
    leave(tmp_path, IDENTITY, 2)


def test_another_training_removes_what_is_over_and_nothing_else(tmp_path: Path) -> None:
    finished = leave(tmp_path, other("1"), 1, finished=True)
    interrupted = leave(tmp_path, other("2"), 2)
    abandoned = leave(tmp_path, other("3"), 3)
    for folder in (abandoned, *abandoned.iterdir()):
        os.utime(folder, (0, 0))
    with checkpoint_run(settings(tmp_path), "demo", other("4"), lambda line: None) as held:
        commit(held, 4, finished=True)
        with checkpoint_run(settings(tmp_path), "demo", other("5"), lambda line: None) as new:
            left = set(new.local.root.parent.iterdir())
    assert left == {interrupted, held.local.root, new.local.root}
    assert not finished.exists()


def test_two_detectors_know_nothing_of_each_other(tmp_path: Path) -> None:
    finished = leave(tmp_path, other("1"), 1, finished=True)
    with checkpoint_run(settings(tmp_path), "bccd", IDENTITY, lambda line: None):
        pass
    assert finished.exists()


def test_the_mirror_loses_other_trainings_that_are_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = FolderBucket(tmp_path / "remote")
    mirrored: tuple[FolderBucket, Bucket] = (FolderBucket(tmp_path / "local"), remote)
    monkeypatch.setattr("nightowl.checkpoint.place.places", lambda *_: mirrored)
    for lr0, is_finished in (("1", True), ("2", False)):
        with checkpoint_run(settings(tmp_path), "demo", other(lr0), lambda line: None) as run:
            commit(run, 1, finished=is_finished)
            for found in run.local.list():
                remote.under(other(lr0).key()).put(found.key, run.local.path(found.key))
    with checkpoint_run(settings(tmp_path), "demo", IDENTITY, lambda line: None):
        pass
    assert {found.key.partition("/")[0] for found in remote.list() if COMMITS in found.key} == {other("2").key()}
    assert {found.key.partition("/")[0] for found in remote.list()} == {other("2").key(), IDENTITY.key()}


def test_a_training_elsewhere_in_the_same_process_is_no_reason_to_wait(tmp_path: Path) -> None:
    with (
        checkpoint_run(settings(tmp_path), "demo", other("1"), lambda line: None),
        pytest.raises(StageFailed, match="is running in another process"),
        checkpoint_run(settings(tmp_path), "demo", other("1"), lambda line: None),
    ):
        pass


def test_a_damaged_identity_is_said_and_the_training_goes_on(tmp_path: Path) -> None:
    run = leave(tmp_path, IDENTITY, 7)
    said: list[str] = []
    path = run / "identity.json"
    path.write_text(path.read_text().replace("c" * 64, "c" * 63 + "b"))
    with checkpoint_run(settings(tmp_path), "demo", IDENTITY, said.append) as again:
        found = again.newest()
    assert found is not None and found.commit.moment.step == 7
    assert said == [f"{run}/identity.json: damaged, and written anew"]
    assert Identity.model_validate_json(path.read_bytes()) == IDENTITY
