"""Real servers for the duration of a block, on loopback, ended by their process ids."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

START_SECONDS = 120
END_SECONDS = 30


@contextmanager
def running(command: list[str], folder: Path, environment: dict[str, str], log: Path) -> Iterator[None]:
    """`command` runs during the block, in a session of its own."""
    with log.open("wb") as file:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=file, start_new_session=True)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(END_SECONDS)


@contextmanager
def prefect_server(home: Path, log: Path) -> Iterator[str]:
    """A Prefect server; yields the address of its API once it answers."""
    port = _free_port()
    api = f"http://127.0.0.1:{port}/api"
    ours = {"PREFECT_HOME": str(home), "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    prefect = str(Path(sys.executable).with_name("prefect"))
    command = [prefect, "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-ui"]
    with running(command, home, {**os.environ, **ours}, log):
        until(START_SECONDS, lambda: httpx.get(f"{api}/health", timeout=2).status_code == 200, log)
        yield api


def until(seconds: float, probe: Callable[[], bool], log: Path) -> None:
    """Wait for `probe` to say yes; an unanswered call means not yet. Fails with the end of `log` when time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if probe():
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    pytest.fail(f"waited {seconds:.0f} s in vain; {log}:\n{log.read_text()[-6000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
