from pathlib import Path

import pytest

from nightowl.cloud.dvc_tracked import tracked_folder
from nightowl.errors import DataError

MD5 = "d41d8cd98f00b204e9800998ecf8427e"
ROW = f"outs:\n- md5: {MD5}.dir\n  size: 12\n  hash: md5\n  path: data\n"
OUT = f"    - path: made/data\n      hash: md5\n      md5: {MD5}.dir\n"
LOCK = f"schema: '2.0'\nstages:\n  split@line:\n    cmd: x\n    outs:\n{OUT}"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / ".dvc").mkdir()
    (tmp_path / "sub").mkdir()
    return tmp_path


@pytest.mark.parametrize("named", ["sub/data", "sub/data.dvc"])
def test_a_folder_is_found_by_its_own_name_and_by_that_of_its_dvc_file(named: str, repo: Path) -> None:
    (repo / "sub" / "data.dvc").write_text(ROW)
    found = tracked_folder(repo / named)
    assert (found.path, found.repo, found.md5, found.num_bytes, found.remote) == (repo / "sub/data", repo, MD5, 12, None)


def test_the_output_of_a_stage_is_found_in_the_lock_above_it(repo: Path) -> None:
    (repo / "sub" / "dvc.lock").write_text(LOCK)
    found = tracked_folder(repo / "sub/made/data")
    assert (found.path, found.md5, found.num_bytes) == (repo / "sub/made/data", MD5, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROW.replace(".dir", ""), "data.dvc: data is a single file; expected a folder"),
        (ROW.replace("  hash: md5\n", ""), "data has no MD5 as DVC 3 records it; record it anew: dvc commit"),
        (ROW.replace(f"md5: {MD5}.dir", "files: []"), "data has no MD5 as DVC 3 records it"),
        ("outs: []\n", "expected one folder, found 0 outputs"),
        ("outs: {{{\n", "data.dvc: not readable as DVC writes it: .*; restore it: git checkout data.dvc"),
        ("outs: 3\n", "data.dvc: not readable as DVC writes it"),
        (None, "DVC has no record of it: neither data.dvc nor an output in dvc.lock; dvc add data"),
    ],
)
def test_what_is_no_tracked_folder_is_said(text: str | None, message: str, repo: Path) -> None:
    if text:
        (repo / "data.dvc").write_text(text)
    with pytest.raises(DataError, match=message):
        tracked_folder(repo / "data")


def test_a_folder_outside_of_dvc_and_a_relative_path_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="in no DVC repository"):
        tracked_folder(tmp_path / "data")
    with pytest.raises(DataError, match="dvc:data: expected an absolute path"):
        tracked_folder(Path("data"))
