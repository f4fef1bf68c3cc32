from pathlib import Path

import pytest

from nightowl.cloud.dvc_config import opener, read_config
from nightowl.cloud.s3 import S3Storage
from nightowl.errors import DataError
from tests.cloud.tracked import config


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of this user's own configuration."""
    monkeypatch.setenv("DVC_SYSTEM_CONFIG_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("DVC_GLOBAL_CONFIG_DIR", str(tmp_path / "user"))
    (tmp_path / "user").mkdir()
    return tmp_path / "user"


def test_later_files_win_option_by_option(tmp_path: Path, machine: Path) -> None:
    (machine / "config").write_text("[core]\n    remote = other\n['remote \"store\"']\n    region = eu-west-1\n")
    config(tmp_path, "[core]\n    remote = store\n['remote \"store\"']\n    url = s3://a/b\n    region = us-east-1\n")
    config(tmp_path, "['remote \"store\"']\n    url = s3://c/d\n", "config.local")
    assert read_config(tmp_path).remote(None) == {"url": "s3://c/d", "region": "us-east-1"}


@pytest.mark.parametrize(
    ("text", "cache", "reason"),
    [
        ("", ".dvc/cache", "where it lies without a word"),
        ("[cache]\n    dir = ../shared\n", "shared", "relative to the file that says so"),
        ("[cache]\n    dir = /mnt/cache\n", "/mnt/cache", "absolute"),
    ],
)
def test_the_cache_lies_where_dvc_has_it(text: str, cache: str, reason: str, tmp_path: Path) -> None:
    config(tmp_path, text)
    assert read_config(tmp_path).cache == tmp_path / cache, reason


def test_the_remote_is_reached_as_dvc_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "[core]\n    remote = store\n['remote \"store\"']\n    url = s3://lines/dvc\n    endpointurl = http://minio:9000\n"
    config(tmp_path, text + "    access_key_id = AKIA\n    secret_access_key = 'se#cret'\n    region = eu-west-1\n")
    storage = opener(read_config(tmp_path), None)()
    assert isinstance(storage, S3Storage)
    assert (storage.url, storage.bucket.endpoint, storage.bucket.region) == (
        "s3://lines/dvc/",
        "http://minio:9000",
        "eu-west-1",
    )
    assert storage.bucket.keys()[:2] == ("AKIA", "se#cret")


@pytest.mark.parametrize(
    ("remote", "message"),
    [
        (
            "url = gs://lines/dvc",
            "gs://lines/dvc is neither S3 nor a folder: pull with `dvc pull` in .* and name the folder itself",
        ),
        (
            "url = s3://lines/dvc\n    version_aware = true",
            "has the option version_aware, which is not read here: pull with `dvc",
        ),
        ("url = s3://lines/dvc\n    ssl_verify = false", "has the option ssl_verify, which is not read here"),
        ("region = eu-west-1", "names no url for the remote 'store': dvc remote add store URL"),
    ],
)
def test_a_remote_that_is_not_read_here_says_what_to_do(remote: str, message: str, tmp_path: Path) -> None:
    config(tmp_path, f"[core]\n    remote = store\n['remote \"store\"']\n    {remote}\n")
    with pytest.raises(DataError, match=message):
        opener(read_config(tmp_path), None)


def test_no_remote_and_no_configuration_are_said(tmp_path: Path) -> None:
    config(tmp_path, "")
    with pytest.raises(DataError, match="no default remote here: dvc remote default NAME"):
        opener(read_config(tmp_path), None)
    config(tmp_path, "what is this")
    with pytest.raises(DataError, match="config: not readable as DVC's configuration"):
        read_config(tmp_path)
