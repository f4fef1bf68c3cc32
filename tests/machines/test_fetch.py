"""What nodes made, brought here through a remote in a folder; DVC itself makes it, pushes it and checks it out."""

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from nightowl.cloud.bucket import FolderBucket
from nightowl.cloud.dvc_tracked import tracked_folder
from nightowl.cloud.s3 import S3Storage
from nightowl.errors import RemoteError
from nightowl.machines.board import Board
from nightowl.machines.fetch import fetch, recorded
from nightowl.machines.records import StageEnd
from nightowl.settings import Settings
from nightowl.stages.workspace import Workspace
from tests.cloud.conftest import HASTY
from tests.cloud.tracked import config
from tests.machines.jobs import NOW, RUN

PIPELINE = """
stages:
  train:
    foreach: [demo]
    do:
      cmd: exec python stage.py
      deps: [stage.py]
      outs: ["out/${item}/train"]
"""
# What it makes differs each time, as what a stage measures does.
STAGE = """
import os, pathlib, time
if "ONLY_RESTORE" in os.environ:
    raise SystemExit("would execute")
out = pathlib.Path("out/demo/train")
out.mkdir(parents=True)
(out / "best.pt").write_text("weights")
(out / "seconds").write_text(str(time.time_ns()))
"""
REMOTE = "[core]\n    remote = store\n    no_scm = true\n['remote \"store\"']\n    url = {url}\n"


@pytest.fixture(autouse=True)
def no_other_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DVC_SYSTEM_CONFIG_DIR", "DVC_GLOBAL_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "none"))


def a_tree(root: Path, remote: Path | str) -> Workspace:
    root.mkdir()
    config(root, REMOTE.format(url=remote))
    (root / "dvc.yaml").write_text(PIPELINE)
    (root / "stage.py").write_text(STAGE)
    return Workspace(root, "demo", Settings(home=root))


def dvc(workspace: Workspace, *words: str, **variables: str) -> int:
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "dvc", *words]
    return subprocess.run(command, cwd=workspace.root, env={**environment, **variables}, timeout=60).returncode


def made(node: Workspace) -> StageEnd:
    """A node brings the stage about and pushes it, as rank 0 does."""
    assert dvc(node, "repro", "--quiet", "--pull", "train@demo") == 0
    assert dvc(node, "push", "--quiet", "--run-cache", "train@demo") == 0
    lock = (node.root / "dvc.lock").read_text()
    return StageEnd(stage="train", executed=True, seconds=1, instance="i-1", generation=1, lock=lock, at=NOW)


def objects(remote: Path, node: Workspace) -> tuple[Path, Path]:
    """Where the remote holds the list of what the node made, and the weights."""
    md5 = tracked_folder(node.out("train")).md5
    weights = next(path for path in remote.rglob("*") if path.is_file() and path.read_bytes() == b"weights")
    return remote / "files" / "md5" / md5[:2] / f"{md5[2:]}.dir", weights


def test_what_was_made_is_here_exactly_and_what_was_deleted_is_told_and_can_be_made_again(tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    first = a_tree(tmp_path / "first", remote)
    board = Board(FolderBucket(tmp_path / "board"), RUN)
    board.put_stage_end(made(first))
    here = a_tree(tmp_path / "here", remote)
    assert fetch(board, here) is None
    assert dvc(here, "repro", "--quiet", "--pull", "train@demo", ONLY_RESTORE="1") == 0
    seconds = (here.out("train") / "seconds").read_text()
    assert seconds == (first.out("train") / "seconds").read_text()

    objects(remote, first)[0].unlink()
    assert fetch(board, here) is None, "this machine has it still"
    bare = a_tree(tmp_path / "bare", remote)
    assert fetch(board, bare) == f"the DVC remote {remote} lacks what train made"
    board.bucket.delete("ends/train.json")
    board.put_stage_end(made(a_tree(tmp_path / "again", remote)))
    assert len(list(remote.glob("runs/*/*/*"))) == 2, "DVC's own memory has both, and may take the one that is gone"
    assert fetch(board, bare) is None
    assert dvc(bare, "repro", "--quiet", "--pull", "train@demo", ONLY_RESTORE="1") == 0
    assert (bare.out("train") / "seconds").read_text() != seconds


def test_without_a_remote_the_cache_that_nodes_and_night_share_has_it_or_lacks_it(tmp_path: Path) -> None:
    node = a_tree(tmp_path / "node", "nowhere")
    config(node.root, "[core]\n    no_scm = true\n")
    assert dvc(node, "repro", "--quiet", "train@demo") == 0
    lock = (node.root / "dvc.lock").read_text()
    board = Board(FolderBucket(tmp_path / "board"), RUN)
    board.put_stage_end(StageEnd(stage="train", executed=True, seconds=1, instance="i-1", generation=1, lock=lock, at=NOW))
    night, cache = a_tree(tmp_path / "night", "nowhere"), node.root / ".dvc" / "cache"
    config(night.root, f"[core]\n    no_scm = true\n[cache]\n    dir = {cache}\n")
    assert fetch(board, night) is None
    assert dvc(night, "repro", "--quiet", "train@demo", ONLY_RESTORE="1") == 0
    shutil.rmtree(cache / "files")
    assert fetch(board, night) == f"DVC's cache {cache} lacks what train made"


def test_one_object_that_is_gone_or_damaged_is_enough(tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    node = a_tree(tmp_path / "node", remote)
    board = Board(FolderBucket(tmp_path / "board"), RUN)
    board.put_stage_end(made(node))
    for path in objects(remote, node):
        shutil.rmtree(node.root / ".dvc" / "cache")
        content = path.read_bytes()
        path.chmod(0o600)
        path.write_bytes(b"damaged")
        assert fetch(board, node) == f"the DVC remote {remote} lacks what train made"
        path.unlink()
        assert fetch(board, node) == f"the DVC remote {remote} lacks what train made"
        path.write_bytes(content)
        assert fetch(board, node) is None


LOCK = """schema: '2.0'
stages:
  train@demo:
    cmd: exec python stage.py
    outs:
    - {path: out/demo/train, hash: md5, md5: 5daed07d278fedd502246bd9da1e0b77.dir, size: 26}
"""


def an_end(lock: str) -> StageEnd:
    return StageEnd(stage="train", executed=True, seconds=1, instance="i-1", generation=1, lock=lock, at=NOW)


def test_a_remote_that_is_not_reached_lacks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setattr("nightowl.cloud.s3.S3Storage", partial(S3Storage, policy=HASTY))
    here = a_tree(tmp_path / "here", "s3://lines/dvc\n    endpointurl = http://127.0.0.1:9")
    board = Board(FolderBucket(tmp_path / "board"), RUN)
    board.put_stage_end(an_end(LOCK))
    with pytest.raises(RemoteError, match=r"127\.0\.0\.1:9"):
        fetch(board, here)


def test_a_remote_that_only_dvc_reads_is_left_to_dvc(tmp_path: Path) -> None:
    here = a_tree(tmp_path / "here", "ssh://host/dvc")
    board = Board(FolderBucket(tmp_path / "board"), RUN)
    board.put_stage_end(an_end(LOCK))
    assert fetch(board, here) is None
    assert tracked_folder(here.out("train")).md5 == "5daed07d278fedd502246bd9da1e0b77"


@pytest.mark.parametrize("lock", ["", "stages: {}", "a: [", "stages: {other@demo: {}}"])
def test_a_record_that_is_none_is_said(lock: str) -> None:
    with pytest.raises(RemoteError, match=r"ends/train\.json: expected DVC's record of train@demo, as i-1 made it"):
        recorded([an_end(lock)], "demo")
