"""Waiting for another process in a way that can be interrupted, ending with the one that started us, and being asked twice.

With several threads about, the kernel may hand a signal to any of them, and a main thread that is blocked in `waitpid` or
`read` then hears of it only when the call returns: hours later, for a training. So nothing here blocks for long.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_MOMENT_SECONDS = 0.5
_CHUNK_BYTES = 1 << 16
_DEATH_SIGNAL, _SUBREAPER = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, linux/prctl.h
ALREADY = "already stopping: what runs saves its state first, and the same command goes on from there; please wait"


def ask_for_signal_when_parent_ends(number: int) -> None:
    """From now on this process gets signal `number` when the one that started it ends, even by SIGKILL. On Linux; elsewhere
    it would go on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, number)


def say_at_once(line: str) -> None:
    """A line on standard error, also from a signal handler that comes in the middle of another one's writing."""
    with suppress(OSError):
        os.write(2, f"{line}\n".encode())


@contextmanager
def impatience_answered() -> Iterator[None]:
    """For the duration of the block, which must be bounded in time, a Ctrl-C is answered with a line and interrupts nothing.
    Only the main thread is ever interrupted by one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def answer(number: int, frame: FrameType | None) -> None:
        say_at_once(ALREADY)

    before = signal.signal(signal.SIGINT, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def wait(process: "subprocess.Popen[bytes]") -> int:
    """The exit code of `process`, when it has ended."""
    while True:
        try:
            return process.wait(_MOMENT_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def lines(process: "subprocess.Popen[bytes]") -> Iterator[str]:
    """What `process` writes to its standard output, a pipe, line by line to its end; bytes that are no text are replaced."""
    assert process.stdout is not None
    descriptor, rest = process.stdout.fileno(), b""
    while True:
        if not select.select([descriptor], [], [], _MOMENT_SECONDS)[0]:
            continue
        chunk = os.read(descriptor, _CHUNK_BYTES)
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace").rstrip() for line in whole)
        if not chunk:
            if rest:
                yield rest.decode(errors="replace").rstrip()
            return


def adopt_orphans(adopt: bool = True) -> None:
    """From now on what the processes below this one leave behind becomes its own children, so that it finds them, or again the
    system's. On Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, int(adopt))


def descendants(pid: int) -> list[int]:
    """The processes below `pid` that are still at work, its children first. On Linux; elsewhere none is found."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(path.parent.name))
    found, level = [], children.get(pid, [])
    while level:
        found += level
        level = [below for each in level for below in children.get(each, [])]
    return found


def kill_descendants() -> int:
    """SIGKILL to every process below this one; returns how many there were."""
    found = descendants(os.getpid())
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in found:
        with suppress(ChildProcessError):  # one that a Popen of ours has waited for, or that was never ours
            os.waitpid(pid, 0)
    return len(found)
