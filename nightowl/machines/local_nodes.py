"""Nodes of runs as processes of this machine, each with a folder of its own: begun, found again by whomever, and ended.

They belong to no session and no process group of whoever begins them, so that they go on when those end.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from nightowl.files import sha256_bytes, write_atomic
from nightowl.machines.boot import unpack

_KILLED_SECONDS = 10.0
_ARCHIVE, _UNPACKED, _LOG, _PID, _BEGUN = "code.tar.gz", "code.sha256", "node.log", "pid", "begun"


class LocalNodes:
    """The folders of nodes lie below `folder`: RUN/NUMBER. Node number n is reached at 127.0.0.(n + 1)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[subprocess.Popen[bytes]] = []  # of this process, which must take note of their end

    def start(self, run_id: str, number: int, boards: Path, code: bytes, instance: str) -> None:
        """Have a node run as `instance`, on the code in the archive `code`."""
        home = self._home(run_id, number)
        tree = _unpacked(home, code)
        words = ["--run", run_id, "--board", str(boards), "--instance", instance, "--address", f"127.0.0.{number + 1}"]
        outside = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTOWL_")}  # the job says them
        environment = {**outside, "NIGHTOWL_NODE_HOME": str(home), "PYTHONPATH": str(tree), "PYTHONUNBUFFERED": "1"}
        with (home / _LOG).open("ab") as log, (home / _BEGUN).open("a") as begun:
            process = subprocess.Popen(
                [sys.executable, "-m", "nightowl.cli", "node", *words],
                cwd=tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            begun.write(f"{instance}\n")
        self._children.append(process)
        write_atomic(home / _PID, f"{process.pid} {_started(process.pid)}")

    def pid(self, run_id: str, number: int) -> int | None:
        """The process of a node, if it is the one that was noted still; None when none runs."""
        try:
            pid, started = (self._home(run_id, number) / _PID).read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        return int(pid) if _started(int(pid)) == started else None

    def alive(self, run_id: str) -> list[int]:
        """The processes of all nodes of a run."""
        return [pid for home in self._homes(run_id) if (pid := self.pid(run_id, int(home.name))) is not None]

    def begun(self, run_id: str, number: int) -> list[str]:
        """The instances that were begun as this node, oldest first."""
        path = self._home(run_id, number) / _BEGUN
        return path.read_text().split() if path.exists() else []

    def last_words(self, run_id: str, number: int) -> str:
        """The last line that a node wrote."""
        path = self._home(run_id, number) / _LOG
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")

    def end(self, run_id: str, patience_seconds: float) -> list[int]:
        """Wait for the nodes to leave, and kill those that do not in time, with what they began; returns what is left."""
        self._until_gone(run_id, patience_seconds)
        for pid in self.alive(run_id):
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # a stage ends with the node that began it
        self._until_gone(run_id, _KILLED_SECONDS)
        self._children = [child for child in self._children if child.poll() is None]
        return self.alive(run_id)

    def tidy(self, run_id: str) -> None:
        """Remove what nodes worked in, of a run that has none now; what they wrote stays."""
        for home in self._homes(run_id):
            for name in (_UNPACKED, _ARCHIVE, _PID):
                (home / name).unlink(missing_ok=True)
            shutil.rmtree(home / "tree", ignore_errors=True)

    def forget(self, run_id: str) -> None:
        """Remove everything of a run's nodes, of which none runs now."""
        shutil.rmtree(self._folder / run_id, ignore_errors=True)

    def _until_gone(self, run_id: str, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self.alive(run_id) and time.monotonic() < until:
            time.sleep(0.1)

    def _home(self, run_id: str, number: int) -> Path:
        return self._folder / run_id / str(number)

    def _homes(self, run_id: str) -> list[Path]:
        return sorted((self._folder / run_id).glob("[0-9]*"))


def _unpacked(home: Path, code: bytes) -> Path:
    """The tree of `code` in `home`, unpacked unless it is there whole."""
    tree, digest = home / "tree", sha256_bytes(code)
    home.mkdir(parents=True, exist_ok=True)
    if not (home / _UNPACKED).exists() or (home / _UNPACKED).read_text() != digest:
        (home / _UNPACKED).unlink(missing_ok=True)
        write_atomic(home / _ARCHIVE, code)
        unpack(home / _ARCHIVE, tree)
        (home / _ARCHIVE).unlink()
        write_atomic(home / _UNPACKED, digest)
    return tree


def _started(pid: int) -> str | None:
    """When a process that is at work began, in the kernel's ticks; None when there is none, or only its exit code."""
    try:
        with_name = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if with_name[0] == "Z" else with_name[19]
