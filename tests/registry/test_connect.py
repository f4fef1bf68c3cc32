"""A registry that cannot be used says so in one line, soon."""

import socket
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from nightowl.errors import RegistryError, UserError
from nightowl.registry.connect import holding, without_password
from nightowl.registry.store import open_registry
from nightowl.settings import Settings
from tests.bundles import Made, new_registry, registered


def garble(path: Path) -> None:
    path.write_bytes(b"this is no database" * 1000)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20_000])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def other_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE customers (name TEXT)")
        database.commit()


def flip_a_page(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 4] = bytes(4096)
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (garble, r"mlflow\.db: the registry cannot be read \(file is not a database\); restore it from a backup"),
        (truncate, r"mlflow\.db: the registry (cannot be read|is damaged)"),
        (flip_a_page, r"mlflow\.db: the registry (cannot be read|is damaged)"),
        (empty, r"mlflow\.db: the registry is empty \(0 bytes\)"),
        (folder, r"mlflow\.db: expected the registry, a SQLite file, found a folder"),
        (other_database, r"mlflow\.db: a SQLite file, but not a registry"),
    ],
)
def test_a_broken_database_is_one_line_and_is_left_as_it_is(harm: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    new_registry(tmp_path)
    path = tmp_path / "registry" / "mlflow.db"
    harm(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(RegistryError, match=message) as caught:
        open_registry(Settings(home=tmp_path))
    assert "\n" not in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_home_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(UserError, match="home"):
        open_registry(Settings(home=tmp_path / "home"))


@pytest.mark.parametrize("uri", ["ftp://somewhere", "relative/folder", "/a/folder", "file:///a/folder"])
def test_a_registry_uri_of_another_kind_names_the_kinds_there_are(uri: str, tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"registry_uri: expected http\(s\)://"):
        open_registry(Settings(home=tmp_path, registry_uri=uri))


@pytest.mark.parametrize("scheme", ["http", "postgresql+psycopg2"])
def test_a_server_that_is_down_is_said_within_seconds_without_its_password(scheme: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(RegistryError, match=r"does not answer \(.*refused\); is the server up") as caught:
        open_registry(Settings(home=tmp_path, registry_uri=f"{scheme}://owl:secret@127.0.0.1:{port}/db"))
    assert time.monotonic() - started < 5
    assert "secret" not in str(caught.value)


def test_a_path_that_a_uri_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="may not hold"):
        open_registry(Settings(home=tmp_path / "what?"))


def test_a_path_with_spaces_and_umlauts_works(tmp_path: Path) -> None:
    registry = new_registry(tmp_path / "Prüfstand 3")
    registered(registry, tmp_path, Made())
    assert (registry.fetch("demo", "1", tmp_path / "fetched") / "weights.pt").is_file()
    assert registry.describe() == str(tmp_path / "Prüfstand 3" / "registry" / "mlflow.db")


def test_a_lock_that_another_holds_is_waited_for_only_so_long(tmp_path: Path) -> None:
    lock = tmp_path / "registry.lock"
    with (
        holding(lock),
        pytest.raises(RegistryError, match=r"another process has held the registry for 0 s"),
        holding(lock, 0.1),
    ):
        pass
    with holding(lock, 0.1):
        pass


def test_a_password_is_never_shown() -> None:
    assert without_password("postgresql://owl:secret@host/db") == "postgresql://owl:***@host/db"
    assert without_password("http://host:5000") == "http://host:5000"


def test_a_relative_path_is_refused_as_it_would_be_another_registry_in_each_folder(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="expected an absolute path"):
        open_registry(Settings(home=tmp_path, registry_uri="sqlite:///mlflow.db"))
