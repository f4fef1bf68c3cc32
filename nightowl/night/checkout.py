"""The code of a night: a commit, and a working tree of its own.

A night never runs in the tree that somebody edits. A clean tree gives its commit; a dirty one is snapshotted into a commit
that no branch holds, so that what ran is known to the byte, and is marked, because a dirty night is never promoted.
"""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nightowl.errors import UserError

# Written by `dvc repro` at the root, where DVC insists on it; a product of the pipeline, not an edit.
_NOT_AN_EDIT = ("dvc.lock",)
MAX_UNTRACKED_BYTES = 64 << 20
_IDENTITY = {
    "GIT_AUTHOR_NAME": "nightowl",
    "GIT_AUTHOR_EMAIL": "nightowl@localhost",
    "GIT_COMMITTER_NAME": "nightowl",
    "GIT_COMMITTER_EMAIL": "nightowl@localhost",
}


@dataclass(frozen=True)
class Snapshot:
    """The code as it is: `commit` holds what would run, `head` is the commit of the branch."""

    commit: str
    head: str
    dirty: bool


def checkout_root(folder: Path) -> Path:
    """The root of the nightowl checkout around `folder`. Raises UserError where there is none."""
    found = _try_git(folder, "rev-parse", "--show-toplevel")
    root = Path(found.stdout.strip()) if found.returncode == 0 else None
    if root is None or not (root / "params.yaml").is_file() or not (root / "dvc.yaml").is_file():
        raise UserError(
            f"{folder}: not inside a nightowl checkout (a git repository with params.yaml and dvc.yaml); cd into one"
        )
    return root


def snapshot(root: Path) -> Snapshot:
    """The commit that holds the tree at `root` as it is now. The tree, its index and its branches are left as they were."""
    found = _try_git(root, "rev-parse", "HEAD")
    if found.returncode != 0:
        raise UserError(f"{root}: the repository has no commit yet; a night runs a commit: git add -A && git commit")
    head = found.stdout.strip()
    if not edited(_git(root, "status", "--porcelain", "-z", "--untracked-files=all")):
        return Snapshot(head, head, dirty=False)
    _refuse_data_in_the_tree(root)
    with tempfile.TemporaryDirectory(prefix="nightowl-index-") as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        _git(root, "read-tree", "HEAD", **index)
        _git(root, "add", "--all", "--", ".", *(f":(exclude){path}" for path in _NOT_AN_EDIT), **index)
        tree = _git(root, "write-tree", **index)
    commit = _git(root, "commit-tree", tree, "-p", head, "-m", "snapshot of a dirty tree", **_IDENTITY)
    return Snapshot(commit, head, dirty=True)


def edited(porcelain: str) -> bool:
    """Whether `git status --porcelain -z` lists anything that a person wrote."""
    entries = [entry for entry in porcelain.split("\0") if entry]
    return any(entry[3:] not in _NOT_AN_EDIT for entry in entries)


def _refuse_data_in_the_tree(root: Path) -> None:
    """A snapshot copies untracked files into the repository: code is small, a data set is not."""
    names = _git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    sizes = {name: (root / name).lstat().st_size for name in names if name}
    total = sum(sizes.values())
    if total > MAX_UNTRACKED_BYTES:
        largest = max(sizes, key=lambda name: sizes[name])
        raise UserError(
            f"{root}: {len(sizes)} untracked files of {total >> 20} MiB, the largest {largest}; data does not belong in the "
            "checkout: move it away, or name it in .gitignore, and run again"
        )


def open_worktree(root: Path, tree: Path, commit: str) -> None:
    """Check `commit` out into a new working tree at `tree`."""
    tree.parent.mkdir(parents=True, exist_ok=True)
    _git(root, "worktree", "add", "--quiet", "--detach", str(tree), commit)


def close_worktree(root: Path, tree: Path) -> None:
    """Remove a night's working tree; absent is fine."""
    _try_git(root, "worktree", "remove", "--force", str(tree))
    shutil.rmtree(tree, ignore_errors=True)
    _try_git(root, "worktree", "prune")


def content_of(root: Path, commit: str, paths: list[str]) -> str:
    """Names and content ids of everything below `paths` in `commit`: equal text, equal code."""
    return _git(root, "ls-tree", "-r", "--full-tree", commit, "--", *sorted(set(paths)))


def _git(root: Path, *arguments: str, **variables: str) -> str:
    done = _try_git(root, *arguments, **variables)
    if done.returncode != 0:
        raise UserError(f"{root}: git {arguments[0]} failed: {' '.join(done.stderr.split()) or done.returncode}")
    return done.stdout.rstrip("\n")


def _try_git(root: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(root), "-c", "core.quotePath=false", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
