"""How MLflow is reached: quietly, with a short patience, and with one clear line where it cannot be.

A SQLite registry is looked at before MLflow opens it, because MLflow would turn any file into a registry; a new one is made
beside its place and published by one rename. Nothing is sent anywhere but to the registry that the settings name.
"""

import fcntl
import os
import socket
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from nightowl.errors import RegistryError, explain_os_error

if TYPE_CHECKING:
    from mlflow import MlflowClient

PROBE_SECONDS = 5.0
LOCK_SECONDS = 120.0
_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}
_NEVER = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}
_UNLESS_SET = {
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


def connect(uri: str, lock: Path) -> "MlflowClient":
    """A client of the MLflow at `uri` (http, https, or a database); a SQLite file that is absent is made, under `lock`.

    Raises:
        RegistryError: when it cannot be reached, or is not an MLflow.
    """
    os.environ.update(_NEVER)
    for name, value in _UNLESS_SET.items():
        os.environ.setdefault(name, value)
    scheme = urlsplit(uri).scheme.partition("+")[0]
    if scheme == "sqlite":
        if not sqlite_path(uri).is_absolute():
            raise RegistryError(
                f"registry_uri: expected an absolute path (four slashes: sqlite:////data/mlflow.db), got {uri!r}"
            )
        _ready_sqlite(sqlite_path(uri), lock)
    elif scheme in _PORTS:
        _probe(uri, scheme)
    else:
        raise RegistryError(f"registry_uri: expected http(s)://, sqlite:///, postgresql:// or mysql://, got {uri!r}")
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri, registry_uri=uri)
    with explained(uri):
        client.search_registered_models(max_results=1)
    return client


@contextmanager
def explained(uri: str) -> Iterator[None]:
    """Turn whatever MLflow raises inside the block into one line of RegistryError."""
    from mlflow.exceptions import MlflowException
    from requests.exceptions import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, RequestException, SQLAlchemyError) as error:
        raise RegistryError(f"{without_password(uri)}: {_one_line(error)}") from error
    except _storage_errors() as error:
        raise RegistryError(f"{without_password(uri)}: {_one_line(error)}") from error
    except OSError as error:
        raise explain_os_error(error) or RegistryError(f"{without_password(uri)}: {_one_line(error)}") from error


@contextmanager
def holding(lock: Path, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the kernel's lock on the file `lock`; it goes with the process. Raises RegistryError after `seconds` of waiting."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as file:
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise RegistryError(f"{lock}: another process has held the registry for {seconds:.0f} s") from None
                time.sleep(0.05)
        yield


def sqlite_uri(path: Path) -> str:
    return f"sqlite:///{path}"


def sqlite_path(uri: str) -> Path:
    """The file that a sqlite URI names."""
    return Path(uri.removeprefix("sqlite:///"))


def without_password(uri: str) -> str:
    """`uri` as it may be shown and logged."""
    parts = urlsplit(uri)
    return uri.replace(f":{parts.password}@", ":***@") if parts.password else uri


def _ready_sqlite(path: Path, lock: Path) -> None:
    if any(character in str(path) for character in "?#%"):
        raise RegistryError(f"{path}: a registry's path may not hold ?, # or %; set NIGHTOWL_HOME to another folder")
    try:
        if not path.exists():
            with holding(lock):
                if not path.exists():
                    _create_sqlite(path)
    except OSError as error:
        raise explain_os_error(error) or RegistryError(f"{path}: {_one_line(error)}") from error
    _refuse_other_files(path)


def _create_sqlite(path: Path) -> None:
    """Make an empty registry beside `path`, then rename: a kill in the middle leaves none, not half a one."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as scratch:
        made = Path(scratch) / path.name
        with explained(sqlite_uri(path)):
            store = SqlAlchemyStore(sqlite_uri(made), str(path.parent / "artifacts"))  # type: ignore[no-untyped-call]
            store.engine.dispose()
        made.replace(path)


def _refuse_other_files(path: Path) -> None:
    """Raises RegistryError unless `path` is a sound SQLite file with MLflow's tables in it."""
    if path.is_dir():
        raise RegistryError(f"{path}: expected the registry, a SQLite file, found a folder")
    if path.stat().st_size == 0:
        raise RegistryError(f"{path}: the registry is empty (0 bytes); restore it from a backup, or remove it to begin anew")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=20)) as database:
            (state,) = database.execute("PRAGMA quick_check(1)").fetchone()
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.OperationalError as error:
        raise RegistryError(
            f"{path}: the registry cannot be opened ({error}); check who owns it, and what else has it open"
        ) from error
    except sqlite3.DatabaseError as error:
        raise RegistryError(f"{path}: the registry cannot be read ({error}); restore it from a backup") from error
    if state != "ok":
        raise RegistryError(f"{path}: the registry is damaged ({' '.join(state.split())}); restore it from a backup")
    if "registered_models" not in tables:
        raise RegistryError(f"{path}: a SQLite file, but not a registry: it lacks MLflow's tables; name another file")


def _probe(uri: str, scheme: str) -> None:
    """Whether anybody listens: MLflow itself would try for minutes."""
    parts = urlsplit(uri)
    host, port = parts.hostname, parts.port or _PORTS[scheme]
    if host is None:
        raise RegistryError(f"registry_uri: no host in {without_password(uri)!r}")
    try:
        socket.create_connection((host, port), PROBE_SECONDS).close()
    except OSError as error:
        raise RegistryError(
            f"{without_password(uri)}: the registry does not answer ({error}); is the server up, and registry_uri right?"
        ) from error


def _storage_errors() -> tuple[type[Exception], ...]:
    """What MLflow lets through of S3, which it brings in only where files lie there."""
    if "boto3" not in sys.modules:
        return ()
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    return Boto3Error, BotoCoreError, ClientError


def _one_line(error: BaseException) -> str:
    text = " ".join(str(getattr(error, "message", "") or error).split())
    return text if len(text) <= 300 else text[:300] + "…"
