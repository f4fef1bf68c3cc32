"""`nightowl train` on two ranks, and on two hosts, as processes: whoever is killed or asked to stop, nobody stays behind, and
running it again ends as undisturbed."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nightowl.files import sha256_file
from nightowl.stages.workspace import Workspace
from tests.stages.test_train import history, make_workspace

END_SECONDS = 150  # torchrun's grace for a rank that waits for one that is gone, and more
PARAMS = """\
prepare: {image_size: 64}
train: {base: yolo11n.yaml, epochs: 2, global_batch: 8, optimizer: AdamW, lr0: 0.001}
data: {}
evaluate: {}
gate: {}
export: {}
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="finds processes by /proc"),
]


def checkout(folder: Path) -> Workspace:
    """A checkout for the commands, with 24 images to train on and 6 to look at."""
    workspace = make_workspace(folder, splits=("train",) * 24 + ("val",) * 6)
    (folder / "params.yaml").write_text("detectors: [tiny]\n")
    (folder / "detectors" / "tiny").mkdir(parents=True)
    (folder / "detectors" / "tiny" / "params.yaml").write_text(PARAMS)
    (folder / "dvc.yaml").write_text("stages: {}\n")  # of a checkout; nothing here runs DVC
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return workspace


def started(folder: Path, ranks: Sequence[str] = ("--nproc", "2")) -> "subprocess.Popen[str]":
    home = {"NIGHTOWL_HOME": str(folder / "home"), "NIGHTOWL_SOURCES__TINY": str(folder / "source"), "NIGHTOWL_DEVICE": "cpu"}
    command = [sys.executable, "-m", "nightowl.cli", "train", "tiny", *ranks]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **home, "NIGHTOWL_CHECKPOINT_EVERY_SECONDS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )


def trained(folder: Path) -> tuple[str, str]:
    """Train to the end; returns the digest of the weights and what was said."""
    process = started(folder)
    _, said = process.communicate()
    assert process.returncode == 0, said
    out = folder / "out" / "tiny" / "train"
    assert [row["epoch"] for row in history(out)] == ["1", "2"]
    return sha256_file(out / "best.pt"), said


def members(folder: Path) -> dict[int, str]:
    """The processes that work in `folder`: their number, and `launcher`, `rank 0`, `rank 1`, or what else they are."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cwd").readlink() == folder and (path / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found[int(path.name)] = _part(path)
        except OSError:
            continue  # it has ended, or is another user's
    return found


def _part(process: Path) -> str:
    words = (process / "cmdline").read_bytes().split(b"\0")
    if b"nightowl.stages.train_rank" in words and b"nightowl.training.agent" not in words:
        variables = dict(each.partition(b"=")[::2] for each in (process / "environ").read_bytes().split(b"\0"))
        return f"rank {variables[b'RANK'].decode()}"
    return "launcher" if b"nightowl.stages.train" in words else b" ".join(words).decode()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("undisturbed")
    checkout(folder)
    return trained(folder)[0]


@pytest.mark.parametrize("whom", ["launcher", "rank 0", "rank 1"])
def test_whoever_is_killed_nobody_stays_and_the_next_run_ends_as_undisturbed(
    tmp_path: Path, undisturbed: str, whom: str
) -> None:
    checkout(tmp_path)
    process = started(tmp_path)
    assert process.stderr is not None
    for line in iter(process.stderr.readline, ""):
        if line.startswith("epoch 1/"):
            victims = [number for number, part in members(tmp_path).items() if part == whom]
            assert len(victims) == 1, members(tmp_path)
            os.kill(victims[0], signal.SIGKILL)
            break
    process.communicate(timeout=END_SECONDS)  # to the end of what it says, and of whoever holds its end of the pipe
    assert process.returncode != 0
    assert within(END_SECONDS, lambda: not members(tmp_path)), members(tmp_path)
    digest, said = trained(tmp_path)
    assert "going on from epoch 2" in said
    assert digest == undisturbed


def test_two_hosts_stop_together_and_end_as_two_ranks_of_one(tmp_path: Path, undisturbed: str) -> None:
    """Two checkouts with homes of their own, that share nothing but where they meet. The second is asked to stop."""
    for host in ("0", "1"):
        checkout(tmp_path / host)
    zero, one = two_hosts(tmp_path)
    assert zero.stderr is not None
    for line in iter(zero.stderr.readline, ""):
        if line.startswith("epoch 1/"):
            one.send_signal(signal.SIGTERM)
            break
    ends = [process.communicate(timeout=END_SECONDS)[1] for process in (zero, one)]
    assert zero.returncode != 0 and one.returncode != 0, ends
    assert within(END_SECONDS, lambda: not members(tmp_path / "0") and not members(tmp_path / "1"))
    again = two_hosts(tmp_path)
    said = [process.communicate(timeout=END_SECONDS)[1] for process in again]
    assert [process.returncode for process in again] == [0, 0], said
    assert "going on from epoch 2" in said[0]
    assert sha256_file(tmp_path / "0" / "out" / "tiny" / "train" / "best.pt") == undisturbed
    assert not (tmp_path / "1" / "out").exists(), "host 0 publishes"


def two_hosts(folder: Path) -> "list[subprocess.Popen[str]]":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        meet = f"127.0.0.1:{probe.getsockname()[1]}"
    return [
        started(folder / host, ("--nproc", "1", "--nnodes", "2", "--node-rank", host, "--rendezvous", meet)) for host in "01"
    ]


def test_a_second_one_of_the_same_training_is_refused(tmp_path: Path) -> None:
    checkout(tmp_path)
    first = started(tmp_path)
    assert first.stderr is not None
    for line in iter(first.stderr.readline, ""):
        if line.startswith("rehearsal:"):
            break
    second = started(tmp_path)
    _, said = second.communicate()
    assert second.returncode != 0
    assert "this very training is running in another process; wait for it, or stop it first" in said
    first.communicate()
    assert first.returncode == 0


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.2)
    return holds()
