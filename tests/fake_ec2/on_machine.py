"""What namespaces and loopback have in common: starting a process that ends with the test, ending many, listening."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from nightowl.processes import ask_for_signal_when_parent_ends

_END_SECONDS = 10.0


def start(command: list[str], environment: Mapping[str, str], folder: Path, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=_end_with_parent,  # noqa: PLW1509  a killed test leaves no instance running
    )


def _end_with_parent() -> None:
    ask_for_signal_when_parent_ends(signal.SIGKILL)


def end(processes: Callable[[], list[int]]) -> None:
    deadline = time.monotonic() + _END_SECONDS
    while (left := processes()) and time.monotonic() < deadline:
        for number in left:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)


def listening(address: str, port: int) -> socket.socket:
    """A socket of the namespace that the calling thread is in."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, port))
    made.listen(128)
    return made
