import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nightowl.commands.foreground import run_in_foreground
from nightowl.processes import ALREADY

# Starts a server of its own, says its process id, and is then killed without a chance to end it.
KILLED = """
import os, signal, subprocess, sys
server = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[1], "w").write(str(server.pid))
os.kill(os.getpid(), signal.SIGKILL)
"""
# Waits to be interrupted, once it has said that it runs.
WAITS = """
import sys, time
open(sys.argv[1], "w").write("runs")
try:
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""
# Saves for a while when interrupted, and loses it when interrupted again.
SAVES = """
import sys, time
open(sys.argv[1], "w").write("runs")
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("saving", flush=True)
    time.sleep(1.5)
    open(sys.argv[1], "w").write("saved")
    sys.exit(130)
"""
# Says by which signal it ended.
TELLS = """
import signal, sys, time
from pathlib import Path
def ended(number, frame):
    Path(sys.argv[1]).with_name("ended").write_text(str(128 + number))
    sys.exit(128 + number)
signal.signal(signal.SIGINT, ended)
signal.signal(signal.SIGTERM, ended)
open(sys.argv[1], "w").write("runs")
time.sleep(60)
"""
FRONT = """
import sys
from pathlib import Path
from nightowl.commands.foreground import run_in_foreground
sys.exit(run_in_foreground([sys.executable, "-c", sys.argv[1], sys.argv[2]], Path(sys.argv[2]).parent))
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def until_written(path: Path) -> str:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.05)
    raise AssertionError(f"{path} was not written")


def test_the_exit_code_is_that_of_the_command(tmp_path: Path) -> None:
    assert run_in_foreground([sys.executable, "-c", "raise SystemExit(3)"], tmp_path) == 3


def test_what_a_killed_command_had_started_is_ended(tmp_path: Path) -> None:
    said = tmp_path / "server"
    assert run_in_foreground([sys.executable, "-c", KILLED, str(said)], tmp_path) == 128 + signal.SIGKILL
    assert not alive(int(said.read_text()))


def test_a_request_to_stop_reaches_the_command_as_an_interrupt(tmp_path: Path) -> None:
    said = tmp_path / "said"
    for request in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        said.unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, "-c", FRONT, WAITS, str(said)]) as front:
            until_written(said)
            os.kill(front.pid, request)
            assert front.wait(20) == 130


@pytest.mark.parametrize(
    ("request_", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGKILL, 143)]
)
def test_what_nobody_asked_for_reaches_a_command_that_can_tell_as_another_signal(
    tmp_path: Path, request_: signal.Signals, code: int
) -> None:
    front = FRONT.replace(".parent)", ".parent, left=15)")
    said, ended = tmp_path / "said", tmp_path / "ended"
    with subprocess.Popen([sys.executable, "-c", front, TELLS, str(said)]) as command:
        until_written(said)
        os.kill(command.pid, request_)
        assert until_written(ended) == str(code)
        assert command.wait(20) == (-signal.SIGKILL if request_ == signal.SIGKILL else code)


def test_an_impatient_second_request_is_answered_in_one_line_and_cuts_nothing_short(tmp_path: Path) -> None:
    said = tmp_path / "said"
    command = [sys.executable, "-c", FRONT, SAVES, str(said)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as front:
        until_written(said)
        os.kill(front.pid, signal.SIGINT)
        assert front.stdout is not None and front.stdout.readline() == "saving\n"
        os.kill(front.pid, signal.SIGINT)
        _, answer = front.communicate(timeout=20)
    assert (front.returncode, said.read_text()) == (130, "saved")
    assert answer == ALREADY + "\n"


def test_what_does_not_end_hears_a_late_request_again(tmp_path: Path) -> None:
    said = tmp_path / "said"
    impatient = FRONT.replace("sys.exit(", "import nightowl.commands.foreground as f; f._PATIENCE_SECONDS = 0.1\nsys.exit(")
    stubborn = SAVES.replace("1.5", "60")
    with subprocess.Popen([sys.executable, "-c", impatient, stubborn, str(said)], stdout=subprocess.PIPE, text=True) as front:
        until_written(said)
        os.kill(front.pid, signal.SIGINT)
        assert front.stdout is not None and front.stdout.readline() == "saving\n"
        time.sleep(0.3)
        os.kill(front.pid, signal.SIGINT)
        assert front.wait(20) != 0
    assert said.read_text() == "runs"
