from pathlib import Path

import pytest

from nightowl.cloud.listing import read_listing, write_listing
from nightowl.cloud.storage import RemoteObject
from nightowl.errors import RemoteError


def test_a_listing_reads_back_as_it_was_written_without_the_markers_of_folders(tmp_path: Path) -> None:
    objects = [RemoteObject("a b/ü.png", 3, "x"), RemoteObject("c", 0, "y")]
    written = [RemoteObject("", 0, "m"), RemoteObject("a b/", 0, "m"), *objects]
    write_listing(tmp_path / "l", written, "s3://b/")
    assert list(read_listing(tmp_path / "l")) == objects


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("../escape.png", "would leave"),
        ("images/../../escape.png", "would leave"),
        ("/etc/passwd", "would leave"),
        ("a\\..\\b.png", "backslash"),
        ("line\nbreak", "control character"),
        ("nul\0", "control character"),
        ("a//b.png", "empty or '.' folder"),
        ("./a.png", "empty or '.' folder"),
        ("not-empty/", "empty or '.' folder"),
        ("x" * 256, "longer than 255 bytes"),
        ("é" * 128, "longer than 255 bytes"),
    ],
)
def test_a_key_that_is_no_file_inside_the_mirror_is_refused_by_name(tmp_path: Path, key: str, reason: str) -> None:
    with pytest.raises(RemoteError, match=reason) as caught:
        write_listing(tmp_path / "l", [RemoteObject(key, 1, "x")], "s3://b/")
    assert repr(key) in str(caught.value)


@pytest.mark.parametrize("key", ["..a/b..png", "a..b", "c:d.png", "ü", "x" * 255])
def test_a_key_that_only_looks_odd_is_a_file(tmp_path: Path, key: str) -> None:
    write_listing(tmp_path / "l", [RemoteObject(key, 1, "x")], "s3://b/")
    assert [found.key for found in read_listing(tmp_path / "l")] == [key]


def test_a_server_that_lists_out_of_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="'a' after 'b', out of order"):
        write_listing(tmp_path / "l", [RemoteObject("b", 1, "x"), RemoteObject("a", 1, "x")], "s3://b/")
