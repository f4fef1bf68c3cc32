"""Fake machines as network and process namespaces, joined by a bridge: addresses of their own, links that can be cut, and an
end that is the end of all their processes."""

import ctypes
import os
import re
import socket
import subprocess
import threading
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import IO

from tests.fake_ec2 import on_machine

METADATA_ADDRESS = "169.254.169.254"
_BRIDGE_MAC = "02:00:00:00:00:01"  # a bridge without one of its own takes the lowest of its members, and changes as they go
_CLONE_NEWNET = 0x40000000
_OWN_PROCESSES = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
_numbers = count(1)


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
        return on_machine.listening(address, port)

    def start(
        self, command: list[str], environment: Mapping[str, str], folder: Path, log: IO[bytes]
    ) -> "subprocess.Popen[bytes]":
        (folder / "uptime").write_text("0.00 0.00\n")  # a machine is as old as its first command, not as the one beneath it
        init = 'mount --bind uptime /proc/uptime; "$@"; exit $?'
        inside = ["ip", "netns", "exec", self._name, *_OWN_PROCESSES, "bash", "-c", init, "init", *command]
        return on_machine.start(inside, environment, folder, log)

    def cut(self, connected: bool) -> None:
        _ip("-n", self._net, "link", "set", self._link, "up" if connected else "down")

    def processes(self) -> list[int]:
        if not Path("/run/netns", self._name).exists():
            return []
        return [int(word) for word in _ip("netns", "pids", self._name).split()]

    def close(self) -> None:
        on_machine.end(self.processes)
        _remove(self._name)


def _remove(name: str) -> None:
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False, timeout=10)


def _has_ip() -> bool:
    return any(Path(folder, "ip").exists() for folder in os.environ.get("PATH", "").split(os.pathsep))


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], capture_output=True, check=True, text=True, timeout=10).stdout
