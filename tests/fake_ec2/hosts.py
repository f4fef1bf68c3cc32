"""Where the processes of a fake instance run: in namespaces, or on 127.0.0.x where the machine does not permit those. Which of
the two it is, is said once, on stderr."""

import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Protocol

from tests.fake_ec2.loopback import Loopback
from tests.fake_ec2.namespaces import Namespaces, namespaces_permitted


class Host(Protocol):
    """A machine that a fake instance runs on."""

    @property
    def address(self) -> str:
        """Its private address, at which the others reach it."""

    @property
    def metadata_address(self) -> tuple[str, int]:
        """Where its metadata service is to listen."""

    def listening(self, address: str, port: int) -> socket.socket:
        """A listening socket of this machine. Served by the test's own process, wherever the socket was made."""

    def start(
        self, command: list[str], environment: Mapping[str, str], folder: Path, log: IO[bytes]
    ) -> "subprocess.Popen[bytes]":
        """Run a command on it, with nothing but `environment`."""

    def cut(self, connected: bool) -> None:
        """Take its link to the others away without a word, or give it back."""

    def processes(self) -> list[int]:
        """The ids of what runs on it."""

    def close(self) -> None:
        """End all its processes, at once, and remove it."""


class Hosts(Protocol):
    """Makes hosts, and removes what was made in common."""

    isolated: bool

    def host(self, name: str, address: str) -> Host:
        """A host for the instance `name`, to which moto gave `address`."""

    def close(self) -> None: ...


def open_hosts(isolated: bool | None = None) -> Hosts:
    """Hosts in namespaces where those are permitted; `isolated` asks for one kind."""
    if isolated is None:
        isolated = namespaces_permitted()
    how = "in network namespaces" if isolated else "as processes on 127.0.0.x: NO ISOLATION, NO LINK CUT"
    print(f"fake EC2: instances run {how}", file=sys.stderr)
    return Namespaces() if isolated else Loopback()
