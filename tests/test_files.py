import errno
import os
from pathlib import Path

import pytest

from nightowl.errors import explain_os_error
from nightowl.files import canonical_json, publishing_folder, sha256_bytes, sha256_file, write_atomic


def test_a_write_replaces_the_whole_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file.json"
    write_atomic(target, "old")
    write_atomic(target, b"new")
    assert target.read_text() == "new"
    assert [path.name for path in target.parent.iterdir()] == ["file.json"]


def test_a_full_disk_leaves_the_old_content_and_no_scraps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    write_atomic(target, "old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomic(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert str(explain_os_error(caught.value)) == (
        f"{target}: the disk is full: free some space or set NIGHTOWL_HOME to a larger disk, then run again"
    )


def test_a_folder_is_published_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with publishing_folder(target) as scratch:
        (scratch / "a").write_text("1")

    def fail_half_way() -> None:
        with publishing_folder(target) as scratch:
            (scratch / "b").write_text("2")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail_half_way()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in target.iterdir()] == ["a"]


def test_canonical_json_does_not_depend_on_the_order_of_keys() -> None:
    assert canonical_json({"b": 1, "a": "é"}) == canonical_json({"a": "é", "b": 1}) == '{"a":"é","b":1}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    content = os.urandom((1 << 20) + 17)
    (tmp_path / "file").write_bytes(content)
    assert sha256_file(tmp_path / "file") == sha256_bytes(content)


def test_an_error_that_nobody_can_act_on_is_not_explained_away() -> None:
    assert explain_os_error(OSError(errno.EBADF, "bad descriptor")) is None


def test_a_name_too_long_for_the_disk_is_one_line_of_bearable_length(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long") as caught:
        (tmp_path / ("x" * 5000)).is_file()
    told = str(explain_os_error(caught.value))
    assert told.endswith("…: the name is too long: correct it where it is written")
    assert len(told) < 400
