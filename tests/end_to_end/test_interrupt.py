"""Ctrl-C in a real terminal's way, to the whole foreground group, and a kill without warning: nothing and nobody is left."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from tests.end_to_end.checkouts import TINY, Checkout, clone


def processes_in(folder: Path) -> dict[int, str]:
    """Process ids and command lines of what works below `folder`."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve().is_relative_to(folder):
                found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found


def started(checkout: Checkout, *command: str) -> "subprocess.Popen[str]":
    """The command, in a session of its own as a terminal gives it, its output and errors in one pipe."""
    return subprocess.Popen(
        command,
        cwd=checkout.root,
        env=checkout.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def until_line(night: "subprocess.Popen[str]", pattern: str) -> str:
    """What it wrote up to the line that matches; fails when it ends without."""
    assert night.stdout is not None
    written = ""
    for line in night.stdout:
        written += line
        if re.match(pattern, line):
            return written
    raise AssertionError(f"it ended without {pattern}:\n{written}")


def rest_of(night: "subprocess.Popen[str]") -> str:
    assert night.stdout is not None
    with night.stdout:
        return night.stdout.read()


def flow_of(checkout: Checkout) -> int:
    (pid,) = [pid for pid, command in processes_in(checkout.root).items() if "-m flows" in command]
    return pid


def test_a_night_stopped_and_then_killed_goes_on_and_leaves_nobody_behind(tmp_path: Path, prefect_home: Path) -> None:
    checkout = clone(tmp_path / "nightowl", prefect_home, TINY.replace("epochs: 1", "epochs: 25"))
    night = started(checkout, "nightowl", "demo", "--images", "48")
    before = until_line(night, "epoch 2/25")
    os.killpg(night.pid, signal.SIGINT)
    time.sleep(0.3)
    os.killpg(night.pid, signal.SIGINT)
    rest = rest_of(night)
    assert night.wait(60) == 130, before + rest
    assert "run the same command again" in rest
    assert "epoch 25/25" not in rest
    assert rest.count("already stopping") == 1 and "Traceback" not in rest
    assert processes_in(checkout.root) == {}
    assert checkout.check("git", "worktree", "list").count("\n") == 1

    night = started(checkout, "nightowl", "night", "demo")
    before = until_line(night, r"epoch \d+/25")
    assert not re.search(r"^epoch [12]/25", before, re.MULTILINE), "those epochs were committed"
    os.kill(flow_of(checkout), signal.SIGKILL)
    assert "epoch 25/25" not in rest_of(night)
    assert night.wait(60) == 128 + signal.SIGKILL
    deadline = time.monotonic() + 60
    while processes_in(checkout.root) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert processes_in(checkout.root) == {}

    again = checkout.run("nightowl", "night", "demo")
    assert again.returncode == 0, again.stdout + again.stderr
    assert not re.search(r"^epoch [12]/25", again.stderr, re.MULTILINE), "those epochs were committed"
    assert "epoch 25/25" in again.stderr, again.stdout + again.stderr
    assert checkout.check("git", "worktree", "list").count("\n") == 1
