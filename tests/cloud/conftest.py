import os
import socket
from collections.abc import Iterator

import pytest

from nightowl.cloud.retry import RetryPolicy
from nightowl.cloud.s3 import S3Storage
from nightowl.cloud.s3_access import Access
from nightowl.cloud.storage import parse_url
from tests.cloud.object_server import BUCKET, ObjectServer, serving

HASTY = RetryPolicy(attempts=3, first_seconds=0.01, longest_seconds=0.05)


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Credentials for a test server, and nothing of the machine's own."""
    nothing = str(tmp_path_factory.getbasetemp() / "no-such-file")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", nothing)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", nothing)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


@pytest.fixture(autouse=True)
def no_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test cuts the power, and flushing waits for whatever else this machine writes."""
    monkeypatch.setattr(os, "sync", lambda: None)


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with serving(ObjectServer()) as running:
        yield running


@pytest.fixture
def bucket(server: ObjectServer) -> S3Storage:
    """The server's objects under `data/`, by a storage that soon gives up."""
    return hasty(server.endpoint)


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """A moto server on loopback, for what a small server of one's own would get wrong in the same way."""
    from moto.server import ThreadedMotoServer

    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


def hasty(endpoint: str, url: str = f"s3://{BUCKET}/data", timeout_seconds: float = 5.0) -> S3Storage:
    return S3Storage(parse_url(url), Access(endpoint), HASTY, timeout_seconds)


def unused_endpoint() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"
