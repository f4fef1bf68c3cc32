import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightowl.data.manifest import Image
from nightowl.data.pin import build_manifest
from nightowl.data.source import record_source, source_folder, source_of
from nightowl.data.stat_cache import load_known
from nightowl.errors import DataError, SettingsError
from nightowl.night.sources import LocalSource, carry_known, fetch_source, pins_cache, pull_source, remember_source
from nightowl.params import DataParams
from nightowl.progress import untracked
from nightowl.settings import Settings, home_of
from tests.cloud.object_server import BUCKET, ObjectServer, serving
from tests.cloud.tracked import config, record, remote_objects
from tests.datasets import a_dataset, write_image, write_yolo_dataset

URL = f"s3://{BUCKET}/line"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(ObjectServer()) as running:
        yield running


@pytest.fixture
def settings(server: ObjectServer, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", s3_endpoint=server.endpoint)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_yolo_dataset(tmp_path / "data", a_dataset(4, 2, 2))


def upload(server: ObjectServer, data: Path) -> None:
    for path in data.rglob("*"):
        if path.is_file():
            server.put(f"line/{path.relative_to(data).as_posix()}", path.read_bytes())


def pin(settings: Settings, named: str | None = None) -> tuple[LocalSource, tuple[Image, ...], str]:
    """What pinning does with a source, without the registry and the weights."""
    local = fetch_source(settings, "demo", named)
    carry_known(settings, "demo", local)
    manifest, _ = build_manifest(local.folder, DataParams(), pins_cache(settings, "demo"), untracked)
    remember_source(settings, "demo", local, named is not None)
    return local, manifest.images, manifest.version()


def test_data_in_s3_has_the_version_that_it_has_in_a_folder(server: ObjectServer, settings: Settings, data: Path) -> None:
    upload(server, data)
    assert pin(settings, URL)[2] == build_manifest(data, DataParams(), data.parent / "cache", untracked)[0].version()


def test_the_address_is_remembered_and_the_stages_read_the_pinned_snapshot(
    server: ObjectServer, settings: Settings, data: Path
) -> None:
    upload(server, data)
    local, _, version = pin(settings, URL)
    assert source_of(settings, "demo") == URL
    assert source_folder(settings, "demo") == local.folder.resolve()
    server.remove("line/images/test/test000.png")
    server.remove("line/labels/test/test000.txt")
    pull_source(settings, "demo", URL)
    assert source_folder(settings, "demo") == local.folder.resolve(), "a pull changes nothing under a night"
    later, images, other = pin(settings)
    assert other != version
    assert len(images) == 7
    assert source_folder(settings, "demo") == later.folder.resolve() != local.folder.resolve()


def test_the_pinned_snapshot_outlives_any_number_of_pulls(server: ObjectServer, settings: Settings, data: Path) -> None:
    upload(server, data)
    pin(settings, URL)
    for number in range(4):
        server.put("line/note.txt", b"%d" % number)
        pull_source(settings, "demo", URL)
    assert len(list(source_folder(settings, "demo").rglob("*.png"))) == 8


def test_a_setting_may_be_an_address_too(server: ObjectServer, settings: Settings, data: Path) -> None:
    upload(server, data)
    there = settings.model_copy(update={"sources": {"demo": URL}})
    with pytest.raises(
        DataError, match=r"setting sources.demo: s3://bucket/line has not been pulled .*nightowl data pull demo"
    ):
        source_folder(there, "demo")
    local, _, _ = pin(there)
    assert source_folder(there, "demo") == local.folder.resolve()
    assert not (home_of(settings) / "sources.json").exists()


def test_files_that_snapshots_share_are_not_read_again(server: ObjectServer, settings: Settings, data: Path) -> None:
    upload(server, data)
    before, images, _ = pin(settings, URL)
    cache = pins_cache(settings, "demo")
    _settle(settings, before.folder, images)
    assert len(load_known(cache, before.folder)) == 8
    changed = write_image(data / "images" / "train" / "train001.png", seed=99)
    server.put("line/images/train/train001.png", changed.read_bytes())
    now = fetch_source(settings, "demo")
    carry_known(settings, "demo", now)
    known = load_known(cache, now.folder)
    assert len(known) == 7
    assert "images/train/train001.png" not in known


def _settle(settings: Settings, folder: Path, images: tuple[Image, ...]) -> None:
    """Pin once more as if the files had come to rest long ago."""
    for image in images:
        os.utime(folder / image.path, ns=(10**18, 10**18))
    build_manifest(folder, DataParams(), pins_cache(settings, "demo"), untracked)


def test_a_folder_is_a_source_as_ever(settings: Settings, data: Path) -> None:
    local, _, _ = pin(settings, str(data))
    assert local == LocalSource(str(data), data, None)
    assert source_folder(settings, "demo") == data


def test_a_folder_cannot_be_pulled_and_another_address_is_refused(settings: Settings, data: Path) -> None:
    record_source(settings, "demo", data)
    with pytest.raises(DataError, match=r"demo: its data lies in .*only s3:// and dvc: sources are pulled"):
        pull_source(settings, "demo", source_of(settings, "demo"))
    with pytest.raises(SettingsError, match="gs://bucket/line: expected a folder, s3://BUCKET/PREFIX or dvc:PATH"):
        fetch_source(settings, "demo", "gs://bucket/line")


def test_a_folder_that_dvc_tracks_is_a_source_and_has_the_version_of_the_folder(
    server: ObjectServer, settings: Settings, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    repo, files = tmp_path / "repo", as_files(data)
    config(repo, f"[core]\n    remote = store\n['remote \"store\"']\n    url = s3://{BUCKET}/dvc\n")
    record(repo, files)
    for key, body in remote_objects(files).items():
        server.put(f"dvc/{key}", body)
    monkeypatch.chdir(repo)
    local, _, version = pin(settings, "dvc:data")
    assert version == build_manifest(data, DataParams(), data.parent / "cache", untracked)[0].version()
    assert source_of(settings, "demo") == local.name == f"dvc:{repo}/data"
    assert source_folder(settings, "demo") == local.folder.resolve()
    server.requests.clear()
    assert pin(settings)[2] == version
    assert not server.requests


def as_files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
