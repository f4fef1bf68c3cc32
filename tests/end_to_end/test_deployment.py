"""`prefect deployment run nightly/demo` against a real server and a process worker, both on loopback."""

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from nightowl.boards import generate
from tests.end_to_end.checkouts import TINY, Checkout, clone

START_SECONDS = 120
RUN_SECONDS = 300


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(checkout: Checkout, log: Path, *command: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server for the duration of the block, in a session of its own, ended by its process id."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=checkout.root, env=checkout.environment(**variables), stdout=file, stderr=file, start_new_session=True
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)


def until(seconds: float, ready: str, probe: object) -> None:
    assert callable(probe)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if probe():
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    pytest.fail(f"waited {seconds:.0f} s in vain: {ready}")


def runs(api: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = httpx.post(f"{api}/flow_runs/filter", json={}, timeout=10).json()
    return found


def test_a_deployment_runs_a_night_on_a_worker(tmp_path: Path) -> None:
    checkout = clone(tmp_path / "nightowl", tmp_path / "prefect", TINY)
    api = f"http://127.0.0.1:{free_port()}/api"
    port = api.split(":")[2].split("/")[0]
    there = {"PREFECT_API_URL": api, "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    server = ["prefect", "server", "start", "--host", "127.0.0.1", "--port", port, "--no-ui"]
    generate(tmp_path / "boards", num_images=48)
    source = {"NIGHTOWL_SOURCES__DEMO": str(tmp_path / "boards")}
    with running(checkout, tmp_path / "server.log", *server, **there):
        until(START_SECONDS, "the server answers", lambda: httpx.get(f"{api}/health", timeout=2).status_code == 200)
        checkout.check("prefect", "work-pool", "create", "nightowl", "--type", "process", **there)
        checkout.check("prefect", "--no-prompt", "deploy", "--all", **there)
        with running(checkout, tmp_path / "worker.log", "prefect", "worker", "start", "--pool", "nightowl", **there, **source):
            checkout.check("prefect", "deployment", "run", "nightly/demo", **there)
            over = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
            demo = {"demo"}
            until(
                RUN_SECONDS,
                f"the run ends; see {tmp_path}/worker.log:\n{(tmp_path / 'worker.log').read_text()[-3000:]}",
                lambda: any(r["state_type"] in over for r in runs(api) if (r["parameters"] or {}).get("detector") in demo),  # type: ignore[attr-defined]
            )
            ended = [r for r in runs(api) if r["state_type"] in over]
            assert [(r["state_type"], r["state_name"]) for r in ended] == [("COMPLETED", "Promoted")], (
                tmp_path / "worker.log"
            ).read_text()[-6000:]
    listed = json.loads(checkout.check("nightowl", "models", "demo", "--json"))
    assert [(entry["version"], entry["state"]) for entry in listed["demo"]["versions"]] == [("1", "champion")]
