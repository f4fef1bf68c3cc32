import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nightowl.training.pulse import Heart, Pulse
from nightowl.training.watchdog import Seen, Watchdog, dumper, hanging, verdict

HERE = socket.gethostname()


@dataclass
class InMemory:
    """A board in this process."""

    shown: dict[int, Pulse] = field(default_factory=dict)
    fault: Exception | None = None

    def show(self, pulse: Pulse) -> None:
        if self.fault:
            raise self.fault
        self.shown[pulse.rank] = pulse

    def all(self) -> list[Pulse]:
        return list(self.shown.values())


def seen(rank: int, beats: int, seconds: float, host: str = "a") -> Seen:
    return Seen(Pulse(rank=rank, host=host, pid=100 + rank, beats=beats, where=f"step {beats}"), seconds)


@pytest.mark.parametrize(
    ("ranks", "hung", "reason"),
    [
        ([], [], "none has shown itself yet"),
        ([seen(0, 7, 5), seen(1, 6, 5)], [], "not for long enough"),
        ([seen(0, 7, 20), seen(1, 6, 20)], [1], "the one behind; the other waits for it"),
        ([seen(0, 7, 20), seen(1, 7, 20)], [0, 1], "all in the same place"),
        ([seen(0, 7, 20), seen(1, 6, 20), seen(2, 6, 3)], [1], "one behind advances still"),
        ([seen(0, 7, 20), seen(1, 8, 20), seen(2, 6, 3)], [], "the one behind advances: the others wait rightly"),
    ],
)
def test_the_rank_that_the_others_wait_for_is_the_one_that_hangs(ranks: list[Seen], hung: list[int], reason: str) -> None:
    assert [each.pulse.rank for each in hanging(ranks, timeout_seconds=10)] == hung, reason


def test_the_verdict_names_rank_host_process_place_and_time() -> None:
    assert verdict([seen(1, 812, 130.4)], 2) == (
        "rank 1 (a, process 101) has not advanced since step 812, 130 s: the other ranks wait for it; its stack is above; "
        "run it again, or raise rank_timeout_seconds"
    )
    assert "all ranks wait in the same place; look at the network" in verdict([seen(0, 8, 130), seen(1, 8, 130)], 2)


@pytest.mark.parametrize(
    ("hosts", "rank", "reason"),
    [
        (["a", "a", "a"], 0, "the first other rank of its host"),
        (["b", "a", "a"], 2, "rank 0 is elsewhere"),
        (["b", "a", "b"], 1, "nobody else is there: itself"),
    ],
)
def test_one_rank_has_the_stack_of_rank_1_dumped(hosts: list[str], rank: int, reason: str) -> None:
    ranks = [seen(rank, 1, 20, host) for rank, host in enumerate(hosts)]
    assert dumper(ranks[1].pulse, ranks, {1}) == rank, reason


def test_ages_are_from_when_a_change_was_seen_whatever_other_clocks_say() -> None:
    now, board = 100.0, InMemory()
    other = Heart(1)
    dog = Watchdog(Heart(0), board, 2, 10.0, clock=lambda: now)
    board.show(other.pulse())
    dog.look()
    now = 105.0
    other.beat("step 1")
    board.show(other.pulse())
    dog.look()
    now = 107.0
    ages = {each.pulse.rank: each.seconds for each in dog.look()}
    assert ages == {0: 7.0, 1: 2.0}


def test_a_rank_that_hangs_ends_the_block_and_one_that_advances_does_not() -> None:
    told: list[str] = []
    board, ended = InMemory(), threading.Event()
    board.show(Pulse(rank=1, host="elsewhere", pid=1, beats=0, where="step 0"))

    def end(message: str) -> None:
        told.append(message)
        ended.set()

    with Watchdog(Heart(0), board, 2, 0.4, end).watching() as heart:
        heart.beat("step 1")
        assert ended.wait(10)
    assert told[0].startswith("rank 1 (elsewhere, process 1) has not advanced since step 0, ")
    told.clear()
    with Watchdog(Heart(0), InMemory(), 1, 0.4, end).watching() as heart:
        for _ in range(20):
            time.sleep(0.05)
            heart.beat()
    assert told == []


def test_a_board_that_is_gone_is_no_verdict() -> None:
    told: list[str] = []
    with Watchdog(Heart(0), InMemory(fault=ConnectionError("gone")), 1, 0.1, told.append).watching():
        time.sleep(0.5)
    assert told == []


PROGRAM = """
import os, sys, time
from datetime import timedelta
import torch, torch.distributed as dist
from nightowl.training.pulse import Heart, board_of
from nightowl.training.watchdog import Watchdog

class Ranks:
    rank, world_size = int(os.environ["RANK"]), 2
    def share(self, value):
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

def falls_asleep():
    time.sleep(600)

dist.init_process_group("gloo", timeout=timedelta(minutes=5))
heart = Heart(Ranks.rank)
with Watchdog(heart, board_of(Ranks()), 2, 2.0).watching():
    for step in range(6):
        heart.beat(f"step {step}")
        if step == 3 and Ranks.rank == 1:
            falls_asleep()
        heart.beat()
        dist.all_reduce(torch.ones(1))
"""


def test_of_two_real_ranks_the_one_that_sleeps_is_named_and_its_stack_dumped(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    place = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    logs = [(tmp_path / f"rank{rank}").open("w+") for rank in (0, 1)]
    ranks = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=place | {"RANK": str(rank)}, stderr=log)
        for rank, log in enumerate(logs)
    ]
    try:
        codes = [process.wait(120) for process in ranks]
    finally:
        for process in ranks:
            process.kill()
        for log in logs:
            log.seek(0)
        said = [log.read() for log in logs]
        for log in logs:
            log.close()
    assert codes == [1, 1], said
    hung = f"rank 1 ({HERE}, process {ranks[1].pid})"
    assert f"{hung} hangs; its stacks:" in said[0]
    assert f"{hung} has not advanced since step 3, 2 s: the other ranks wait for it" in said[0]
    assert "in falls_asleep" in said[1], "the stack of the one that hangs, by its own standard error"
    assert "in falls_asleep" not in said[0]
