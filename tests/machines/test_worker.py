"""The work of a node as processes: `dvc` and the stage are small stand-ins that lie in the run's tree."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from nightowl.errors import StageFailed
from nightowl.machines.worker import Ended, StageWorker, newest_step
from nightowl.processes import adopt_orphans, descendants
from nightowl.settings import Settings
from nightowl.stages import repro
from nightowl.stages.workspace import Workspace
from tests.machines.jobs import a_generation

# `repro` does what the file `script` says, as the stage `train` would; everything else is noted and done.
DVC = """
import json, os, pathlib, signal, subprocess, sys, time
words = sys.argv[1:]
with open("calls", "a") as calls:
    calls.write(" ".join([*words, os.environ["NIGHTOWL_STAGE"], os.environ["NIGHTOWL_NNODES"], os.environ["NIGHTOWL_NPROC"],
                          os.environ.get("NIGHTOWL_RENDEZVOUS", "-")]) + "\\n")
if words[0] == "push":
    sys.exit(int(pathlib.Path("push-code").read_text()))
script = pathlib.Path("script").read_text()
pathlib.Path("dvc.lock").write_text("what was made")
outcomes = pathlib.Path("out/demo/outcomes")
outcomes.mkdir(parents=True, exist_ok=True)
def ended(status, code, message=""):
    (outcomes / "train.json").write_text(json.dumps({"status": status, "exit_code": code, "message": message}))
    (outcomes / "train.pid").unlink(missing_ok=True)
    sys.exit(255 if code else 0)
if script == "restores":
    sys.exit(0)
print("at work", flush=True)
if script == "trains":
    ended("done", 0)
if script == "fails":
    ended("failed", 1, "the loss was no number")
if script == "commits":
    signal.signal(signal.SIGTERM, lambda *_: ended("preempted", 75, "asked to stop"))
if script == "hangs":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"],
                     start_new_session=True)
(outcomes / "train.pid").write_text(str(os.getpid()))
time.sleep(60)
"""
JOIN = """
import os, sys, time, pathlib
with open("calls", "a") as calls:
    calls.write("join " + os.environ["NIGHTOWL_NODE_RANK"] + " " + os.environ.get("NIGHTOWL_RENDEZVOUS", "-") + "\\n")
if sys.argv[2:] == ["--prepare"]:
    pathlib.Path("prepared").touch()
sys.exit(int(pathlib.Path("join-code").read_text()))
"""


@dataclass
class Tree:
    root: Path
    worker: StageWorker
    said: list[str]
    others: frozenset[int]

    def processes(self) -> list[int]:
        """What the worker's work began; other tests have processes too."""
        return [pid for pid in descendants(os.getpid()) if pid not in self.others]

    def sweep(self) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def write(self, name: str, content: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(content)

    def calls(self) -> list[str]:
        return (self.root / "calls").read_text().splitlines()

    def ended(self, seconds: float = 20) -> Ended:
        found = within(seconds, self.worker.ended)
        assert found is not None
        return found


def within(seconds: float, look: Callable[[], object]) -> object:
    until = time.monotonic() + seconds
    while (found := look()) is None and time.monotonic() < until:
        time.sleep(0.02)
    assert found is not None
    return found


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tree]:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    settings = Settings(home=tmp_path / "home", checkpoint_request=tmp_path / "please")
    said: list[str] = []
    worker = StageWorker(Workspace(tmp_path, "demo", settings), 2, said.append, lambda: None)
    tree = Tree(tmp_path, worker, said, frozenset(descendants(os.getpid())))
    worker.sweep = tree.sweep
    for name, content in {"dvc/__init__.py": "", "dvc/__main__.py": DVC, "push-code": "0", "join-code": "0"}.items():
        tree.write(name, content)
    for name in ("nightowl/__init__.py", "nightowl/stages/__init__.py"):
        tree.write(name, "")
    tree.write("nightowl/stages/train_join.py", JOIN)
    adopt_orphans()
    yield tree
    adopt_orphans(False)
    tree.sweep()


@pytest.mark.parametrize(("script", "executed"), [("trains", True), ("restores", False)])
def test_rank_0_brings_a_stage_about_and_pushes_it(tree: Tree, script: str, executed: bool) -> None:
    tree.write("script", script)
    tree.worker.begin("train", a_generation(3, "a", "b"), 0)
    assert tree.ended() == Ended("done", "", executed, lock="what was made")
    assert tree.calls() == [
        "repro --quiet --pull train@demo train 2 2 10.0.0.0:29500",
        "push --quiet --run-cache train@demo train 2 2 10.0.0.0:29500",
    ]
    assert tree.said == (["at work"] if executed else [])


def test_other_stages_are_of_one_host(tree: Tree) -> None:
    tree.write("script", "restores")
    tree.worker.begin("prepare", a_generation(3, "a", "b"), 0)
    assert tree.ended().how == "done"
    assert tree.calls()[0] == "repro --quiet --pull prepare@demo prepare 1 1 -"


def test_a_stage_that_fails_or_cannot_be_pushed_is_not_done(tree: Tree) -> None:
    tree.write("script", "fails")
    tree.worker.begin("train", a_generation(1, "a"), 0)
    assert tree.ended() == Ended("failed", "the loss was no number", True)
    tree.write("script", "trains")
    tree.write("push-code", "1")
    tree.worker.begin("train", a_generation(2, "a"), 0)
    found = tree.ended()
    assert found.how == "failed" and "could not be pushed" in found.message


def test_without_a_remote_nothing_is_pulled_or_pushed(tree: Tree) -> None:
    tree.write("script", "trains")
    tree.write("push-code", "1")
    tree.worker.shares = False
    tree.worker.begin("train", a_generation(1, "a"), 0)
    assert tree.ended() == Ended("done", "", True, "what was made")
    assert [call.split(" train@demo")[0] for call in tree.calls()] == ["repro --quiet"]


def test_what_lasts_here_is_done_though_it_cannot_be_pushed(tree: Tree) -> None:
    tree.write("script", "trains")
    tree.write("push-code", "1")
    tree.worker.lasts = True
    tree.worker.begin("train", a_generation(1, "a"), 0)
    assert tree.ended() == Ended("done", "", True, "what was made")
    assert "could not be pushed to the DVC remote; they are in the local cache" in tree.said[-1]


def test_a_further_host_has_what_it_needs_restored_and_makes_nothing_itself(tree: Tree) -> None:
    tree.write("script", "restores")
    tree.worker.begin("train", a_generation(3, "a", "b"), 1)
    assert tree.ended().how == "done"
    assert tree.calls() == ["repro --quiet --pull prepare@demo none 2 2 10.0.0.0:29500", "join 1 10.0.0.0:29500"]


def test_a_node_prepares_before_others_count_on_it_or_says_that_it_cannot(tree: Tree) -> None:
    tree.write("script", "restores")
    tree.worker.warm_up()
    assert (tree.root / "prepared").exists()
    assert tree.calls()[0].startswith("repro --quiet --pull prepare@demo none")
    tree.write("join-code", "2")
    with pytest.raises(StageFailed, match="its images could not be prepared here"):
        tree.worker.warm_up()


@pytest.mark.parametrize(("code", "how"), [("75", "preempted"), ("1", "failed")])
def test_how_a_further_host_ended_is_its_exit_code(tree: Tree, code: str, how: str) -> None:
    tree.write("script", "restores")
    tree.write("join-code", code)
    tree.worker.begin("train", a_generation(3, "a", "b"), 1)
    assert tree.ended().how == how


def test_work_that_is_asked_to_stop_saves(tree: Tree) -> None:
    tree.write("script", "commits")
    tree.worker.begin("train", a_generation(1, "a"), 0)
    within(20, lambda: tree.worker.workspace.leader("train").exists() or None)
    tree.worker.stop(20)
    tree.worker.stop(20)
    assert tree.ended() == Ended("preempted", "asked to stop", True)


def test_work_that_does_not_end_is_ended_with_all_that_it_began(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write("script", "hangs")
    tree.worker.begin("train", a_generation(1, "a"), 0)
    within(20, lambda: tree.worker.workspace.leader("train").exists() or None)
    assert len(tree.processes()) == 2
    begun = time.monotonic()
    monkeypatch.setattr(repro, "DVC_SECONDS", 0.5)
    tree.worker.stop(0.2)
    assert tree.ended().how == "preempted"
    assert time.monotonic() - begun < 15
    within(5, lambda: True if not tree.processes() else None)


def test_a_stop_that_comes_before_the_stage_has_begun_is_heard(tree: Tree) -> None:
    tree.write("script", "commits")
    tree.worker.begin("train", a_generation(1, "a"), 0)
    tree.worker.stop(5)
    assert tree.ended().how == "preempted"


def test_a_stop_that_comes_before_its_process_ends_also_one_that_never_listens(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repro, "DVC_SECONDS", 0.5)
    tree.write("script", "hangs")
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # processes begin with it
    try:
        tree.worker.begin("train", a_generation(1, "a"), 0)
        tree.worker.stop(0.2)
        assert tree.ended().how == "preempted"
    finally:
        signal.signal(signal.SIGTERM, before)
    within(5, lambda: True if not tree.processes() else None)


def test_a_checkpoint_is_asked_for_by_a_touch(tree: Tree) -> None:
    tree.worker.request_checkpoint()
    assert (tree.root / "please").exists()


def test_the_newest_committed_step_is_that_of_the_training_written_to_last(tree: Tree) -> None:
    settings = tree.worker.workspace.settings
    assert newest_step(settings, "demo") is None and tree.worker.committed() is None
    tree.write("out/demo/outcomes/train.step", "40 53")
    assert tree.worker.committed() == 40, "what it went on from is committed somewhere"
