"""Ctrl-C in a real terminal's way: the signal goes to the whole foreground group. Nothing is lost and nobody is left behind."""

import os
import re
import signal
import subprocess
from pathlib import Path

from tests.end_to_end.checkouts import TINY, clone


def processes_in(folder: Path) -> list[str]:
    """The command lines of live processes that work below `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve().is_relative_to(folder):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def test_an_interrupted_night_goes_on_where_it_stopped_and_leaves_nobody_behind(tmp_path: Path, prefect_home: Path) -> None:
    checkout = clone(tmp_path / "nightowl", prefect_home, TINY.replace("epochs: 1", "epochs: 25"))
    night = subprocess.Popen(
        ["nightowl", "demo", "--images", "48"],
        cwd=checkout.root,
        env=checkout.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert night.stdout is not None
    before = []
    for line in night.stdout:
        before.append(line)
        if line.startswith("epoch 2/25"):
            os.killpg(night.pid, signal.SIGINT)
            break
    rest = night.stdout.read()
    night.stdout.close()
    assert night.wait(60) == 130, "".join(before) + rest
    assert "run the same command again" in rest
    assert "epoch 25/25" not in rest
    assert not [command for command in processes_in(checkout.root) if "nightowl.stages" in command or "dvc" in command]

    again = checkout.run("nightowl", "night", "demo")
    assert again.returncode == 0, again.stdout + again.stderr
    assert not re.search(r"^epoch [12]/25", again.stderr, re.MULTILINE), "those epochs were committed"
    assert "epoch 25/25" in again.stderr, again.stdout + again.stderr
