import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from nightowl.errors import UserError
from nightowl.machines.archive import code_archive, tree_id


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("print(1)\n")
    (tmp_path / "run.sh").write_text("true\n")
    (tmp_path / "run.sh").chmod(0o755)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(root: Path, *arguments: str, **more: str) -> str:
    names = {f"GIT_{who}_{what}": "t@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, env={**os.environ, **names, **more}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(root: Path, at: str = "2026-01-01T00:00:00Z") -> str:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "m", "--allow-empty", GIT_AUTHOR_DATE=at, GIT_COMMITTER_DATE=at)
    return git(root, "rev-parse", "HEAD")


def members(archive: bytes) -> dict[str, tuple[bytes, int]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {each.name: (tar.extractfile(each).read(), each.mode) for each in tar}  # type: ignore[union-attr]


def test_it_holds_the_commit_and_what_is_laid_over_it_and_not_what_lies_around(repository: Path) -> None:
    (repository / "untracked.key").write_text("secret")
    archive = code_archive(repository, "HEAD", {"inputs/demo/base.json": b"{}", "run.sh": b"other\n"})
    assert members(archive) == {
        "code/a.py": (b"print(1)\n", 0o644),
        "inputs/demo/base.json": (b"{}", 0o644),
        "run.sh": (b"other\n", 0o644),
    }
    assert members(code_archive(repository, "HEAD", {}))["run.sh"] == (b"true\n", 0o755)


def test_the_same_content_gives_the_same_bytes_and_tree_whenever_it_was_committed(repository: Path) -> None:
    first, later = git(repository, "rev-parse", "HEAD"), commit(repository, "2026-02-02T00:00:00Z")
    assert first != later
    assert code_archive(repository, first, {"a": b"1"}) == code_archive(repository, later, {"a": b"1"})
    assert tree_id(repository, first) == tree_id(repository, later)
    (repository / "run.sh").write_text("false\n")
    assert tree_id(repository, commit(repository)) != tree_id(repository, first)


def test_a_link_is_refused_by_name(repository: Path) -> None:
    (repository / "link").symlink_to("run.sh")
    commit(repository)
    with pytest.raises(UserError, match="link: a link cannot be sent to rented machines"):
        code_archive(repository, "HEAD", {})


def test_a_commit_that_is_not_there_is_said(repository: Path) -> None:
    with pytest.raises(UserError, match="git archive failed"):
        code_archive(repository, "0" * 40, {})
