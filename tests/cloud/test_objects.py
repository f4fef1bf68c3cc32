import errno
import hashlib
import os
from pathlib import Path
from typing import IO

import pytest

from nightowl.cloud.objects import ObjectStore, make_folder
from nightowl.cloud.storage import FolderStorage, RemoteObject
from nightowl.errors import RemoteError, StorageError


def an_object(key: str, content: bytes) -> RemoteObject:
    return RemoteObject(key, len(content), hashlib.md5(content).hexdigest())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "one").write_bytes(b"one")
    return tmp_path / "source"


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    store = ObjectStore(tmp_path / "objects", tmp_path / "arriving")
    store.prepare()
    return store


def test_an_object_is_fetched_once_whatever_it_is_called(objects: ObjectStore, source: Path) -> None:
    assert objects.ensure(FolderStorage(source), an_object("one", b"one")) == 3
    assert objects.ensure(FolderStorage(source), an_object("moved", b"one")) is None


def test_an_etag_that_is_no_md5_stands_for_its_own_key_only(objects: ObjectStore) -> None:
    paths = {objects.path(RemoteObject(*row)) for row in [("a", 3, "x-2"), ("b", 3, "x-2"), ("a", 4, "x-2"), ("a", 3, "y-2")]}
    assert len(paths) == 4


def test_a_damaged_object_is_fetched_again(objects: ObjectStore, source: Path) -> None:
    found = an_object("one", b"one")
    objects.ensure(FolderStorage(source), found)
    kept = Path(objects.path(found))
    kept.chmod(0o644)
    kept.write_bytes(b"0ne")
    assert objects.ensure(FolderStorage(source), found) == 3
    assert kept.read_bytes() == b"one"


def test_what_nothing_links_to_is_dropped(objects: ObjectStore, source: Path, tmp_path: Path) -> None:
    (source / "two").write_bytes(b"two")
    one, two = an_object("one", b"one"), an_object("two", b"two")
    for found in (one, two):
        objects.ensure(FolderStorage(source), found)
    objects.link(two, f"{tmp_path}/two")
    assert objects.drop_unlinked() == 1
    assert not Path(objects.path(one)).exists()
    assert Path(objects.path(two)).exists()


def test_a_name_that_is_a_file_and_a_folder_is_refused(objects: ObjectStore, source: Path, tmp_path: Path) -> None:
    found = an_object("one", b"one")
    objects.ensure(FolderStorage(source), found)
    objects.link(found, f"{tmp_path}/a")
    with pytest.raises(RemoteError, match="one: another object has this name"):
        objects.link(found, f"{tmp_path}/a")
    for folder in ("a", "a/b"):
        with pytest.raises(RemoteError, match="one: another object has this name"):
            make_folder(f"{tmp_path}/{folder}", found)


def test_more_equal_files_than_an_object_may_have_links_go_on_with_a_copy(
    objects: ObjectStore, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = an_object("one", b"one")
    objects.ensure(FolderStorage(source), found)
    link = os.link

    def at_most_three(path: str, target: str) -> None:
        if os.stat(path).st_nlink >= 3:
            raise OSError(errno.EMLINK, "Too many links", path)
        link(path, target)

    monkeypatch.setattr(os, "link", at_most_three)
    for number in range(7):
        objects.link(found, f"{tmp_path}/copy-{number}")
    assert {(tmp_path / f"copy-{number}").read_bytes() for number in range(7)} == {b"one"}
    assert objects.drop_unlinked() == 0


def test_a_file_system_without_hard_links_is_said(
    objects: ObjectStore, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = an_object("one", b"one")
    objects.ensure(FolderStorage(source), found)

    def refuse(path: str, target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted", path)

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StorageError, match=r"no hard links .*set NIGHTOWL_HOME"):
        objects.link(found, f"{tmp_path}/one")


def test_a_disk_that_fills_up_leaves_no_object_and_says_where(objects: ObjectStore, source: Path) -> None:
    class Filling(FolderStorage):
        def download(self, found: RemoteObject, file: IO[bytes]) -> None:
            file.write(b"o")
            raise OSError(errno.ENOSPC, "No space left on device")

    found = an_object("one", b"one")
    with pytest.raises(OSError, match=r"No space left on device: .*objects"):
        objects.ensure(Filling(source), found)
    assert list(Path(objects.path(found)).parent.iterdir()) == []
