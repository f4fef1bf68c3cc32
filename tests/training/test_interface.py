import os
import subprocess
import sys

import pytest

from nightowl.training.interface import interface_to
from tests.fake_ec2.namespaces import namespaces_permitted


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is not told")
@pytest.mark.parametrize(
    ("host", "reason"),
    [("127.0.0.1", "this host"), ("127.0.0.9", "another of the loopback range"), ("localhost", "by name")],
)
def test_the_loopback_is_met_on_itself(host: str, reason: str) -> None:
    assert interface_to(host) == "lo", reason


def test_a_host_that_nobody_knows_has_no_interface() -> None:
    assert interface_to("no-such-host.invalid") is None


@pytest.mark.skipif(not namespaces_permitted(), reason="needs network namespaces")
def test_hosts_of_a_network_are_met_on_it_whoever_asks() -> None:
    name = f"nwl{os.getpid()}-interface"
    code = "import sys; from nightowl.training.interface import interface_to; print(interface_to(sys.argv[1]))"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        for command in ("link set lo up", "link add eth7 type bridge", "addr add 172.31.0.4/16 dev eth7", "link set eth7 up"):
            subprocess.run(["ip", "-n", name, *command.split()], check=True)
        for host in ("172.31.0.4", "172.31.0.9"):
            asked = ["ip", "netns", "exec", name, sys.executable, "-c", code, host]
            assert subprocess.run(asked, capture_output=True, text=True).stdout == "eth7\n", "rank 0 and another alike"
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)
