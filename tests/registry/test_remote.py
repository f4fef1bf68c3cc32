"""A registry that is shared: files on S3, or all of it behind an MLflow server."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from nightowl.errors import RegistryError
from nightowl.registry.store import Registry, open_registry
from nightowl.settings import Settings
from tests.bundles import Made, new_registry, registered

ONE, TWO = Made(night="night-1", weights=b"one"), Made(night="night-2", weights=b"two")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An S3 bucket on loopback, found by the ordinary AWS variables."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name in ("AWS_ENDPOINT_URL", "MLFLOW_S3_ENDPOINT_URL"):
        monkeypatch.setenv(name, f"http://{host}:{port}")
    for name, value in {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    name = f"models-{port}"  # moto's memory is the process's: another test must not see these
    boto3.client("s3").create_bucket(Bucket=name)
    yield name
    server.stop()


def use(registry: Registry, folder: Path) -> None:
    """What is done with a registry, wherever it is."""
    assert registered(registry, folder, ONE, TWO) == ["1", "2"]
    registry.promote("demo", "1", "first", by="tester")
    registry.promote("demo", "2", "better", by="tester")
    assert registry.rollback("demo", "worse in the field", by="tester") == "1"
    assert [info.state for info in registry.versions("demo")] == ["champion", "taken back"]
    fetched = registry.fetch("demo", "champion", folder / "fetched")
    assert (fetched / "weights.pt").read_bytes() == b"one"
    assert (fetched / "inputs" / "base.json").is_file()
    with pytest.raises(RegistryError, match="no version '7'; versions: 1, 2"):
        registry.version("demo", "7")


def test_files_may_lie_on_s3(bucket: str, tmp_path: Path) -> None:
    new_registry(tmp_path / "home")
    settings = Settings(home=tmp_path / "home", registry_artifacts=f"s3://{bucket}/factory")
    use(open_registry(settings), tmp_path)
    keys = [item["Key"] for item in boto3.client("s3").list_objects_v2(Bucket=bucket)["Contents"]]
    assert all(key.startswith("factory/demo/") for key in keys)
    assert not (tmp_path / "home" / "registry" / "artifacts").exists()


def test_a_file_damaged_on_s3_is_named(bucket: str, tmp_path: Path) -> None:
    new_registry(tmp_path / "home")
    registry = open_registry(Settings(home=tmp_path / "home", registry_artifacts=f"s3://{bucket}/factory"))
    registered(registry, tmp_path, ONE)
    s3 = boto3.client("s3")
    (key,) = (i["Key"] for i in s3.list_objects_v2(Bucket=bucket)["Contents"] if i["Key"].endswith("model.onnx"))
    s3.put_object(Bucket=bucket, Key=key, Body=b"flipped")
    with pytest.raises(RegistryError, match=r"demo version 1 \(s3://.*\): model\.onnx is damaged"):
        registry.fetch("demo", "1", tmp_path / "fetched")


def test_a_bucket_that_is_not_there_leaves_no_version(bucket: str, tmp_path: Path) -> None:
    new_registry(tmp_path / "home")
    registry = open_registry(Settings(home=tmp_path / "home", registry_artifacts="s3://another-bucket/factory"))
    with pytest.raises(RegistryError, match=r"NoSuchBucket|does not exist"):
        registered(registry, tmp_path, ONE)
    assert registry.versions("demo") == []


@pytest.mark.slow
def test_all_of_it_may_be_behind_a_server(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    new_registry(tmp_path / "server")
    database = f"sqlite:///{tmp_path / 'server' / 'registry' / 'mlflow.db'}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", database, "--artifacts-destination", str(tmp_path / "files")]
    environment = {**os.environ, "DO_NOT_TRACK": "1", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (tmp_path / "server.log").open("w") as log:
        server = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait_for(port, server)
        settings = Settings(home=tmp_path / "home", registry_uri=f"http://127.0.0.1:{port}")
        use(open_registry(settings), tmp_path)
        assert not (tmp_path / "home" / "registry").exists()
    finally:
        os.killpg(server.pid, 15)
        server.wait(30)


def _wait_for(port: int, server: subprocess.Popen[bytes], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    pytest.fail("the MLflow server did not come up")
