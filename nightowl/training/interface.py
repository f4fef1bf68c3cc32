"""Which network interface ranks of several hosts are to meet on.

Gloo takes the address that the host's own name resolves to, which is 127.0.0.1 on many a machine, and then no other host
reaches it; NCCL guesses. The way to the host where all meet is the one that the others come by.
"""

import fcntl
import socket
import struct
import sys

_GET_ADDRESS = 0x8915  # SIOCGIFADDR, linux/sockios.h
_NAME_BYTES = 16


def interface_to(host: str) -> str | None:
    """The name of the interface that packets to `host` leave by, this host's own included; None where that cannot be told."""
    if sys.platform != "linux":
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, 9))  # a datagram socket: nothing is sent
        except OSError:
            return None
        ours = probe.getsockname()[0]
        named = [name for _, name in socket.if_nameindex()]
        return next((name for name in named if ours in (_address(probe, name), _loopback(name, ours))), None)


def _address(probe: socket.socket, name: str) -> str | None:
    request = struct.pack("256s", name.encode()[: _NAME_BYTES - 1])
    try:
        return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), _GET_ADDRESS, request)[20:24])
    except OSError:
        return None  # it has none


def _loopback(name: str, address: str) -> str | None:
    return address if name == "lo" and address.startswith("127.") else None
