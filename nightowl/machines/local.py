"""The engine `local`: the nodes of a run as processes of this machine, over a folder as their board.

It is the twin of rented machines: the same agent, heartbeats, generations and checkpoints. Its nodes outlive whoever started
them, as machines do, and end with the run or at its deadline.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from nightowl.cloud.bucket import FolderBucket
from nightowl.files import write_atomic
from nightowl.machines.board import CODE, Board
from nightowl.machines.boot import unpack
from nightowl.machines.engine import Remains, RunStatus
from nightowl.machines.job import Job
from nightowl.machines.records import Cancel, LogLine, RunEnd
from nightowl.machines.reopen import reopen
from nightowl.machines.standing import standing

_END_SECONDS = 120.0


def _utc_now() -> datetime:
    return datetime.now(UTC)


class LocalEngine:
    """Boards and nodes lie below `folder`. Node number n is reached at 127.0.0.(n + 1)."""

    def __init__(self, folder: Path, now: Callable[[], datetime] = _utc_now) -> None:
        self._folder, self._now = folder, now
        self.bucket = FolderBucket(folder / "boards")
        self._children: list[subprocess.Popen[bytes]] = []  # of this process, which must take note of their end

    def submit(self, job: Job) -> str:
        """Begin the run, or adopt it. The code is on its board already. One that ended otherwise than done begins anew."""
        board = self._board(job.run_id)
        end = board.end()
        if end is not None and end.how != "done":
            reopen(board)
        board.put_job(job)
        self.renew(job.run_id)
        return job.run_id

    def renew(self, run_id: str) -> None:
        """Have as many nodes run as the job wants; one that died is replaced, as a group of rented machines would."""
        board = self._board(run_id)
        job = board.job()
        if job is None or board.end() or board.cancelled() or self._now() >= job.deadline:
            return
        for number in range(job.nodes):
            if self._pid(run_id, number) is None:
                self._start(board, number)

    def status(self, run_id: str) -> RunStatus:
        return standing(self._board(run_id), self._now())

    def logs(self, run_id: str, after: Mapping[str, int]) -> Iterator[LogLine]:
        return self._board(run_id).logs(after)

    def cancel(self, run_id: str) -> None:
        self._board(run_id).put_cancel(Cancel(by=f"process {os.getpid()}", at=self._now()))

    def tear_down(self, run_id: str, patience_seconds: float = _END_SECONDS) -> Remains:
        """End the run's processes; those that do not leave in time are killed."""
        board = self._board(run_id)
        if board.job() is not None and board.end() is None:
            board.put_end(RunEnd(how="cancelled", message="torn down", at=self._now()))
        until = time.monotonic() + patience_seconds
        while self._alive(run_id) and time.monotonic() < until:
            time.sleep(0.2)
        for pid in self._alive(run_id):
            os.killpg(pid, signal.SIGKILL)  # what it began ends with it
        until = time.monotonic() + 10
        while self._alive(run_id) and time.monotonic() < until:
            time.sleep(0.1)
        self._children = [child for child in self._children if child.poll() is None]
        return Remains(instances=tuple(map(str, self._alive(run_id))))

    def node_pid(self, run_id: str, number: int) -> int | None:
        """The process of a node; None when none runs."""
        return self._pid(run_id, number)

    def _board(self, run_id: str) -> Board:
        return Board(self.bucket, run_id)

    def _home(self, run_id: str, number: int) -> Path:
        return self._folder / "nodes" / run_id / str(number)

    def _alive(self, run_id: str) -> list[int]:
        homes = sorted((self._folder / "nodes" / run_id).glob("[0-9]*"))
        return [pid for home in homes if (pid := self._pid(run_id, int(home.name))) is not None]

    def _start(self, board: Board, number: int) -> None:
        home = self._home(board.run_id, number)
        home.mkdir(parents=True, exist_ok=True)
        write_atomic(home / CODE, board.bucket.get(CODE))
        tree = home / "tree"
        if not tree.exists():
            unpack(home / CODE, tree)
        begun = f"local-{number}-{int(self._now().timestamp() * 1000):x}"
        words = ["--run", board.run_id, "--board", str(self.bucket.root)]
        identity = ["--instance", begun, "--address", f"127.0.0.{number + 1}"]
        environment = {**os.environ, "NIGHTOWL_NODE_HOME": str(home), "PYTHONPATH": str(tree), "PYTHONUNBUFFERED": "1"}
        with (home / "node.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "nightowl.cli", "node", *words, *identity],
                cwd=tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._children.append(process)
        write_atomic(home / "pid", f"{process.pid} {_started(process.pid)}")

    def _pid(self, run_id: str, number: int) -> int | None:
        """The process id that was noted, if it is that of the same process still."""
        try:
            pid, started = (self._home(run_id, number) / "pid").read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        return int(pid) if _started(int(pid)) == started else None


def _started(pid: int) -> str | None:
    """When a process that is at work began, in the kernel's ticks; None when there is none, or only its exit code."""
    try:
        with_name = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if with_name[0] == "Z" else with_name[19]
