"""A whole night whose stages a node of this machine runs, which outlives it: stopped, left, killed, and taken up."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.end_to_end.checkouts import TINY, Checkout, clone
from tests.end_to_end.test_interrupt import flow_of, processes_in, rest_of, started, until_line

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
EPOCHS = 40


@pytest.fixture
def checkout(tmp_path: Path, prefect_home: Path, api: str) -> Iterator[Checkout]:
    """Without a DVC remote; whatever still works in it afterwards is killed."""
    tiny = TINY.replace("epochs: 1", f"epochs: {EPOCHS}")
    checkout = replace(clone(tmp_path / "nightowl", prefect_home, tiny), api=api, night_seconds=900)
    (checkout.root / "settings.toml").write_text('engine = "detached"\n')
    yield checkout
    for pid in processes_in(checkout.root):
        os.kill(pid, signal.SIGKILL)


def node_of(checkout: Checkout) -> int:
    (pid,) = [pid for pid, command in processes_in(checkout.root).items() if "nightowl.cli node" in command]
    return pid


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def only_the_node_is_left(checkout: Checkout) -> bool:
    """Neither the command nor its flow; what works below the node's own folder may."""
    nodes = checkout.root / ".nightowl" / "detached" / "nodes"
    return processes_in(checkout.root) == processes_in(nodes)


def log_of(checkout: Checkout) -> str:
    logs = sorted((checkout.root / ".nightowl" / "detached" / "boards").glob("runs/*/logs/*/*.txt"))
    return "".join(path.read_text() for path in logs)


def test_a_run_outlives_its_nights_and_the_next_one_takes_it_up(checkout: Checkout) -> None:
    night = started(checkout, "nightowl", "demo", "--images", "48")
    before = until_line(night, rf".*epoch \d+/{EPOCHS}")
    assert "asking for 1 node(s) for prepare, train, evaluate, export" in before
    os.kill(night.pid, signal.SIGINT)
    said = rest_of(night)
    assert night.wait(60) == 130, said
    assert "cancelled; its nodes save what they have" in said
    assert processes_in(checkout.root) == {}, "Ctrl-C is a wish that it end"
    done = log_of(checkout).count(f"/{EPOCHS}")

    night = started(checkout, "nightowl", "night", "demo")
    until_line(night, r".*going on from epoch")  # what it wrote before it was stopped is said again
    node = node_of(checkout)
    os.kill(night.pid, signal.SIGHUP)
    said = rest_of(night)
    assert night.wait(60) == 128 + signal.SIGTERM, said
    until(lambda: only_the_node_is_left(checkout))
    assert node_of(checkout) == node, "the terminal was closed"
    assert re.search(r"^demo-\w{16}: running; 1 node, train", checkout.check("nightowl", "machines", "list"))

    night = started(checkout, "nightowl", "night", "demo")
    assert "taking it up" in until_line(night, r".*going on from epoch")
    os.kill(flow_of(checkout), signal.SIGKILL)
    rest_of(night)
    assert night.wait(60) == 128 + signal.SIGKILL
    until(lambda: only_the_node_is_left(checkout))
    assert node_of(checkout) == node

    again = checkout.check("nightowl", "night", "demo")
    assert "taking it up" in again and "demo@champion is version 1" in again
    for stage in ("prepare", "train", "evaluate", "export"):
        assert f"{stage}@demo: restored from the cache" in again
    assert processes_in(checkout.root) == {}
    assert list((checkout.root / ".nightowl" / "detached").glob("nodes/*/*/tree")) == []
    epochs = re.findall(rf"epoch (\d+)/{EPOCHS}", log_of(checkout))
    assert len(epochs) <= EPOCHS + 1 and done > 0, "it went on from what was saved, each time"
    (page,) = [path for path in checkout.root.glob(".nightowl/nights/demo/*/report.html") if "Node hours" in path.read_text()]
    assert "at full price" not in page.read_text()
