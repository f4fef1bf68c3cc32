"""Killed at any instant, what was committed before can be gone on from."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from nightowl.checkpoint.commits import Moment
from nightowl.checkpoint.identity import Identity
from nightowl.checkpoint.plan import Cadence, Keep
from nightowl.checkpoint.run import Run
from nightowl.checkpoint.saver import Saver
from nightowl.cloud.bucket import FolderBucket

identity = Identity(dataset_sha256="0" * 64, params={}, base={}, code={}, libraries={})
folder, said = Path(sys.argv[1]), []

def opened():
    return Run(FolderBucket(folder / "home"), FolderBucket(folder / "mirror"), identity, Keep(), said.append)

def train():
    run = opened()
    found = run.newest()
    step = found.state["step"] if found else 0
    with Saver(run, Cadence(), said.append) as saver:
        while True:
            step += 1
            state = {"step": step, "model": torch.full((200_000,), float(step))}
            saver.save(lambda: state, Moment(step=step, epoch=step // 4, reason="epoch" if step % 4 == 0 else "time"))
            time.sleep(random.random() / 200)

def newest_name():
    return max((path.name for path in (folder / "home" / "commits").glob("w*")), default="")

def wait_for_a_commit_beyond(name):
    deadline = time.monotonic() + 60
    while newest_name() <= name:
        assert time.monotonic() < deadline, "nothing is committed"
        time.sleep(0.002)

random.seed(int(sys.argv[2]))
reached = 0
for number in range(int(sys.argv[3])):
    child = os.fork()
    if child == 0:
        train()
    wait_for_a_commit_beyond(newest_name())
    time.sleep(random.random() / 10)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = opened().newest()
    step = found.state["step"] if found else 0
    assert step >= reached, f"kill {number}: gone back from {reached} to {step}"
    assert found is None or bool((found.state["model"] == step).all()), f"kill {number}: a state of another step"
    assert said == [], f"kill {number}: {said}"
    assert not list((folder / "home").rglob(".put.*")), f"kill {number}: half-written files stay for ever"
    reached = step
print(reached)
"""


def test_after_five_kills_in_the_middle_of_saving_the_newest_state_is_whole(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path), "7", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 5, "it came somewhere between the kills"
