"""Where the processes of a fake instance run: each in network and process namespaces of its own, joined by a bridge; where
the machine does not permit that, as plain processes on 127.0.0.x. Which of the two it is, is said once, on stderr.

In a namespace an instance has the private address that moto gave it, its links can be cut, and its end is the end of all its
processes. Without, addresses are 127.0.0.x, a link cannot be cut, and processes are found by a mark in their environment.
"""

import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import IO, Protocol

MARK = "FAKE_EC2_INSTANCE"
METADATA_ADDRESS = "169.254.169.254"
_BRIDGE_MAC = "02:00:00:00:00:01"  # a bridge without one of its own takes the lowest of its members, and changes as they go
_CLONE_NEWNET = 0x40000000
_END_SECONDS = 10.0
_numbers = count(1)


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


def namespaces_permitted() -> bool:
    """Whether this machine lets us make what `Namespaces` makes: tried with one, which is removed."""
    sweep()
    name = f"nwl{os.getpid()}-try"
    try:
        _ip("netns", "add", name)
        _ip("-n", name, "link", "add", "br0", "type", "bridge")
        return (
            subprocess.run(["ip", "netns", "exec", name, *_OWN_PROCESSES, "true"], capture_output=True, timeout=10).returncode
            == 0
        )
    except (OSError, subprocess.SubprocessError):
        return False
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False, timeout=10) if _has_ip() else None


def sweep() -> None:
    """Remove namespaces of test processes that were killed: their names hold the process id."""
    folder = Path("/run/netns")
    for path in folder.glob("nwl*-*") if folder.is_dir() else ():
        owner = re.match(r"nwl(\d+)-", path.name)
        if owner and not Path("/proc", owner[1]).exists():
            _remove(path.name)


class Namespaces:
    """A bridge in a namespace of its own, and a namespace a host."""

    isolated = True

    def __init__(self) -> None:
        self._prefix, self._links = f"nwl{os.getpid()}-{next(_numbers)}", count(1)
        self._net = f"{self._prefix}-net"
        _ip("netns", "add", self._net)
        _ip("-n", self._net, "link", "add", "br0", "address", _BRIDGE_MAC, "type", "bridge")
        _ip("-n", self._net, "link", "set", "br0", "up")

    def host(self, name: str, address: str) -> "NamespaceHost":
        return NamespaceHost(self._net, f"{self._prefix}-{name}", f"v{next(self._links)}", address)

    def close(self) -> None:
        _remove(self._net)


class NamespaceHost:
    """One namespace, with `address` on eth0, and 169.254.169.254 on its loopback."""

    def __init__(self, net: str, name: str, link: str, address: str) -> None:
        self.address, self._net, self._name, self._link = address, net, name, link
        self.metadata_address = (METADATA_ADDRESS, 80)
        _ip("netns", "add", name)
        try:
            _ip("-n", net, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("-n", net, "link", "set", link, "master", "br0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "addr", "add", f"{METADATA_ADDRESS}/32", "dev", "lo")
            _ip("-n", name, "addr", "add", f"{address}/16", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
        except BaseException:
            _remove(name)
            raise

    def listening(self, address: str, port: int) -> socket.socket:
        made: list[socket.socket] = []
        thread = threading.Thread(target=lambda: made.append(self._listen_inside(address, port)))
        thread.start()  # a namespace is entered by a thread, which ends there
        thread.join()
        if not made:
            raise OSError(f"{self._name}: could not listen on {address}:{port}")
        return made[0]

    def _listen_inside(self, address: str, port: int) -> socket.socket:
        descriptor = os.open(f"/run/netns/{self._name}", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns {self._name}")
        finally:
            os.close(descriptor)
        return _listening(address, port)

    def start(
        self, command: list[str], environment: Mapping[str, str], folder: Path, log: IO[bytes]
    ) -> "subprocess.Popen[bytes]":
        (folder / "uptime").write_text("0.00 0.00\n")  # a machine is as old as its first command, not as the one beneath it
        init = 'mount --bind uptime /proc/uptime; "$@"; exit $?'
        inside = ["ip", "netns", "exec", self._name, *_OWN_PROCESSES, "bash", "-c", init, "init", *command]
        return _start(inside, environment, folder, log)

    def cut(self, connected: bool) -> None:
        _ip("-n", self._net, "link", "set", self._link, "up" if connected else "down")

    def processes(self) -> list[int]:
        if not Path("/run/netns", self._name).exists():
            return []
        return [int(word) for word in _ip("netns", "pids", self._name).split()]

    def close(self) -> None:
        _end(self.processes)
        _remove(self._name)


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
        self.metadata_address = (address, 8169)

    def listening(self, address: str, port: int) -> socket.socket:
        return _listening(self.address if address == METADATA_ADDRESS else address, port)

    def start(
        self, command: list[str], environment: Mapping[str, str], folder: Path, log: IO[bytes]
    ) -> "subprocess.Popen[bytes]":
        return _start(command, {**environment, MARK: self._mark}, folder, log)

    def cut(self, connected: bool) -> None:
        raise NotImplementedError("on 127.0.0.x no link can be cut: run where network namespaces are permitted")

    def processes(self) -> list[int]:
        mark = f"{MARK}={self._mark}".encode()
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if mark in _environment(path)]

    def close(self) -> None:
        _end(self.processes)


_OWN_PROCESSES = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]


def _start(command: list[str], environment: Mapping[str, str], folder: Path, log: IO[bytes]) -> "subprocess.Popen[bytes]":
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
    from nightowl.processes import ask_for_signal_when_parent_ends

    ask_for_signal_when_parent_ends(signal.SIGKILL)


def _end(processes: Callable[[], list[int]]) -> None:
    deadline = time.monotonic() + _END_SECONDS
    while (left := processes()) and time.monotonic() < deadline:
        for number in left:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended, or is another user's


def _listening(address: str, port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, port))
    made.listen(128)
    return made


def _remove(name: str) -> None:
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False, timeout=10)


def _has_ip() -> bool:
    return any(Path(folder, "ip").exists() for folder in os.environ.get("PATH", "").split(os.pathsep))


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], capture_output=True, check=True, text=True, timeout=10).stdout
