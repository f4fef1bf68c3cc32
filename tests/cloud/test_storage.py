import io
from pathlib import Path

import pytest

from nightowl.cloud.storage import FolderStorage, ObjectChanged, Place, parse_url
from nightowl.errors import SettingsError


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("s3://lines/line-3/images", Place("lines", "line-3/images/")),
        ("s3://lines/line-3/", Place("lines", "line-3/")),
        ("s3://lines", Place("lines", "")),
        ("s3://lines/", Place("lines", "")),
    ],
)
def test_an_address_is_a_bucket_and_a_prefix_that_is_a_folder(url: str, place: Place) -> None:
    assert parse_url(url) == place


@pytest.mark.parametrize("url", ["gs://lines/line-3", "https://lines/line-3", "s3:///line-3", "s3://", "/data/line-3"])
def test_another_address_is_refused_with_what_was_expected(url: str) -> None:
    with pytest.raises(SettingsError, match="expected a folder, s3://BUCKET/PREFIX or dvc:PATH"):
        parse_url(url)


def test_a_folder_lists_its_files_in_order_and_hands_over_what_it_listed(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("b/2", "a-1", "b/1"):
        (tmp_path / name).write_text(f"content of {name}")
    storage, file = FolderStorage(tmp_path), io.BytesIO()
    found = list(storage.list())
    assert [f.key for f in found] == ["a-1", "b/1", "b/2"]
    storage.download(found[1], file)
    assert file.getvalue() == b"content of b/1"


def test_what_changed_or_went_since_it_was_listed_is_told_apart_from_the_rest(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("before")
    storage = FolderStorage(tmp_path)
    (found,) = storage.list()
    (tmp_path / "one").write_text("after")
    with pytest.raises(ObjectChanged, match="changed since"):
        storage.download(found, io.BytesIO())
    (tmp_path / "one").unlink()
    with pytest.raises(ObjectChanged, match="gone since"):
        storage.download(found, io.BytesIO())
