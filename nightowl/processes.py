"""Waiting for another process in a way that can be interrupted, and ending with the one that started us.

With several threads about, the kernel may hand a signal to any of them, and a main thread that is blocked in `waitpid` or
`read` then hears of it only when the call returns: hours later, for a training. So nothing here blocks for long.
"""

import ctypes
import os
import select
import subprocess
import sys
from collections.abc import Iterator

_MOMENT_SECONDS = 0.5
_CHUNK_BYTES = 1 << 16
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, linux/prctl.h


def ask_for_signal_when_parent_ends(number: int) -> None:
    """From now on this process gets signal `number` when the one that started it ends, even by SIGKILL. On Linux; elsewhere
    it would go on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, number)


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
