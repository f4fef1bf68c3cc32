"""Trainings in processes of their own, one a rank, that a test can kill; forked from a server that has imported torch."""

import multiprocessing
import os
import socket
import sys
import traceback
from collections.abc import Callable
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from nightowl.errors import Preempted
from nightowl.training.group import Group

Work = Callable[[Group, Path], None]


def context() -> ForkServerContext:
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["tests.training.warm"])
    return made


def start(work: Work, folder: Path, world_size: int = 1, device: str = "cpu") -> list[ForkServerProcess]:
    """Start `work(group, folder)` on so many ranks; they meet on a free port of this machine. `device`: `cuda` is one each."""
    port = _free_port()
    started = []
    for rank in range(world_size):
        process = context().Process(target=_run, args=(work, folder, rank, world_size, port, device))
        process.start()
        started.append(process)
    return started


def run(work: Work, folder: Path, world_size: int = 1, seconds: float = 120, device: str = "cpu") -> list[int | None]:
    """Run it to its end; the exit code of each rank: 0, 75 when preempted, 1 after an error (in `folder`/error-RANK.txt)."""
    started = start(work, folder, world_size, device)
    for process in started:
        process.join(seconds)
    for process in started:
        process.kill()
        process.join()
    return [process.exitcode for process in started]


def _run(work: Work, folder: Path, rank: int, world_size: int, port: int, device: str) -> None:
    from nightowl.training.group import Alone, Ranks

    try:
        if world_size == 1:
            work(Alone(), folder)
            return
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world_size))
        group = Ranks("cpu" if device == "cpu" else f"cuda:{rank}", timeout_minutes=1)
        work(group, folder)
        group.close()
    except Preempted:
        sys.exit(Preempted.exit_code)
    except Exception:  # noqa: BLE001  a process border; the test reads it
        (folder / f"error-{rank}.txt").write_text(traceback.format_exc())
        sys.exit(1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
