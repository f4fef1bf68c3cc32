"""Fake machines as plain processes on 127.0.0.x, where namespaces are not permitted: found by a mark in their environment. A
link cannot be cut."""

import os
import socket
import subprocess
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import IO

from tests.fake_ec2 import on_machine
from tests.fake_ec2.namespaces import METADATA_ADDRESS

_MARK = "FAKE_EC2_INSTANCE"
_METADATA_PORT = 8169


class Loopback:
    """127.0.0.10 and onwards, on this machine's own loopback."""

    isolated = False

    def __init__(self) -> None:
        self._addresses = count(10)

    def host(self, name: str, address: str) -> "LoopbackHost":
        return LoopbackHost(name, f"127.0.0.{next(self._addresses)}")

    def close(self) -> None:
        return


class LoopbackHost:
    """Processes whose environment bears the name of the instance."""

    def __init__(self, name: str, address: str) -> None:
        self.address, self._name, self._mark = address, name, f"{os.getpid()}-{name}"
        self.metadata_address = (address, _METADATA_PORT)

    def listening(self, address: str, port: int) -> socket.socket:
        return on_machine.listening(self.address if address == METADATA_ADDRESS else address, port)

    def start(
        self, command: list[str], environment: Mapping[str, str], folder: Path, log: IO[bytes]
    ) -> "subprocess.Popen[bytes]":
        return on_machine.start(command, {**environment, _MARK: self._mark}, folder, log)

    def cut(self, connected: bool) -> None:
        raise NotImplementedError("on 127.0.0.x no link can be cut: run where network namespaces are permitted")

    def processes(self) -> list[int]:
        mark = f"{_MARK}={self._mark}".encode()
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if mark in _environment(path)]

    def close(self) -> None:
        on_machine.end(self.processes)


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended, or is another user's
