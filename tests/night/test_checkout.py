import os
import subprocess
from pathlib import Path

import pytest

from nightowl.errors import UserError
from nightowl.night.checkout import checkout_root, close_worktree, content_of, edited, open_worktree, snapshot


def git(root: Path, *arguments: str) -> str:
    identity = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t"}
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True, env={**os.environ, **identity}
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    git(root, "init", "-q")
    for name, content in {
        "params.yaml": "a: 1",
        "dvc.yaml": "stages: {}",
        ".gitignore": "/ignored\n",
        "code/é.py": "x",
    }.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(content)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


def test_a_clean_tree_is_its_own_commit(checkout: Path) -> None:
    (checkout / "ignored").write_text("not ours")
    (checkout / "dvc.lock").write_text("written by dvc repro, not by a person")
    taken = snapshot(checkout)
    assert not taken.dirty
    assert taken.commit == taken.head == git(checkout, "rev-parse", "HEAD")


def test_a_dirty_tree_is_snapshotted_and_left_as_it_was(checkout: Path, tmp_path: Path) -> None:
    (checkout / "params.yaml").write_text("a: 2")
    (checkout / "new file.txt").write_text("new")
    (checkout / "dvc.lock").write_text("lock")
    git(checkout, "add", "new file.txt")
    before = git(checkout, "status", "--porcelain")
    taken = snapshot(checkout)
    assert taken.dirty
    assert taken.commit != taken.head
    assert git(checkout, "status", "--porcelain") == before
    assert git(checkout, "branch", "--contains", taken.commit) == ""
    open_worktree(checkout, tmp_path / "tree", taken.commit)
    assert (tmp_path / "tree" / "params.yaml").read_text() == "a: 2"
    assert (tmp_path / "tree" / "new file.txt").read_text() == "new"
    assert not (tmp_path / "tree" / "dvc.lock").exists()


def test_a_data_set_left_in_the_tree_is_not_copied_into_the_repository(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightowl.night.checkout.MAX_UNTRACKED_BYTES", 1 << 20)
    (checkout / "images").mkdir()
    (checkout / "images" / "a.png").write_bytes(bytes(2 << 20))
    with pytest.raises(UserError, match=r"1 untracked files of 2 MiB, the largest images/a.png; .* name it in .gitignore"):
        snapshot(checkout)


def test_a_worktree_comes_and_goes(checkout: Path, tmp_path: Path) -> None:
    tree = tmp_path / "nights" / "tree"
    open_worktree(checkout, tree, snapshot(checkout).commit)
    (tree / "made.txt").write_text("by the night")
    close_worktree(checkout, tree)
    close_worktree(checkout, tree)
    assert not tree.exists()
    assert "nights" not in git(checkout, "worktree", "list")


def test_content_changes_with_the_code_and_with_nothing_else(checkout: Path) -> None:
    before = content_of(checkout, snapshot(checkout).commit, ["code", "dvc.yaml"])
    (checkout / "params.yaml").write_text("a: 3")
    assert content_of(checkout, snapshot(checkout).commit, ["code", "dvc.yaml"]) == before
    (checkout / "code" / "é.py").write_text("y")
    assert content_of(checkout, snapshot(checkout).commit, ["code", "dvc.yaml"]) != before


def test_outside_a_checkout_the_message_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not inside a nightowl checkout"):
        checkout_root(tmp_path)


def test_a_repository_without_a_commit_is_told_to_make_one(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with pytest.raises(UserError, match="no commit yet"):
        snapshot(tmp_path)


@pytest.mark.parametrize(
    ("porcelain", "expected"),
    [("", False), ("?? dvc.lock\0", False), (" M dvc.lock\0", False), (" M a.py\0", True), ("?? x/dvc.lock\0", True)],
)
def test_only_the_lock_of_dvc_is_not_an_edit(porcelain: str, expected: bool) -> None:
    assert edited(porcelain) is expected
