"""A long command in front of a terminal: the process itself hears Ctrl-C, and what it started does not.

A terminal sends Ctrl-C to every process of the foreground group. A flow has to stop in order (training commits, then DVC, then
Prefect's server), so it runs in a session of its own, and a request to stop is passed on to it alone. An impatient second one
is answered with a line instead: it would cut short what saves a training's state.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType

from nightowl.processes import ALREADY, ask_for_signal_when_parent_ends, say_at_once, wait

_GROUP_SECONDS = 10
_PATIENCE_SECONDS = 130  # an orderly stop takes at most so long: a stage's commit, then DVC
_REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_in_foreground(command: Sequence[str], folder: Path, held: bool = False, left: int = signal.SIGINT) -> int:
    """Run `command` in `folder`, with our input and output; returns its exit code. A request to stop reaches it as SIGINT, and
    another one only when it should long have ended. `held`: SIGINT waits until the command unblocks it, as nightowl.starting
    does, so that none comes while Python itself starts. `left`: what it gets when nobody asked it to stop, but the terminal was
    closed, this machine goes down, or we are killed."""
    sys.stdout.flush()
    before_it = partial(_before, held, left)
    process = subprocess.Popen(command, cwd=folder, start_new_session=True, preexec_fn=before_it)  # noqa: PLW1509

    asked: list[float] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if asked and now - asked[-1] < _PATIENCE_SECONDS:
            say_at_once(ALREADY)
            return
        asked.append(now)
        process.send_signal(signal.SIGINT if number == signal.SIGINT else left)

    before = {number: signal.signal(number, pass_on) for number in _REQUESTS}
    try:
        code = wait(process)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _end_group(process.pid)
    return code if code >= 0 else 128 - code


def _end_group(leader: int) -> None:
    """End what a killed command left of its process group: Prefect's own server, say. After an orderly end there is nothing."""
    for request in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _GROUP_SECONDS
        while time.monotonic() < deadline:
            try:
                os.killpg(leader, request)
            except ProcessLookupError:
                return
            time.sleep(0.1)


def _before(held: bool, left: int) -> None:
    """In the new process, before the command: it hears of our end."""
    if held:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    ask_for_signal_when_parent_ends(left)
