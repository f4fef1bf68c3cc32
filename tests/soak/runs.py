"""Runs of real stages on real nodes, as processes of this machine: this very code, small data, a folder as the remote."""

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nightowl.data.findings import write_findings
from nightowl.data.golden import golden_text
from nightowl.data.manifest import write_manifest
from nightowl.data.pin import build_manifest
from nightowl.files import sha256_bytes, sha256_file, write_record
from nightowl.machines.archive import code_archive
from nightowl.machines.board import CODE, Board
from nightowl.machines.job import Environment, Job, run_id_of
from nightowl.machines.local import LocalEngine
from nightowl.machines.records import NodeBeat
from nightowl.night.checkout import snapshot
from nightowl.params import DataParams
from nightowl.processes import descendants
from nightowl.training.base import BaseWeights
from tests.datasets import a_dataset, write_yolo_dataset

ROOT = Path(__file__).resolve().parents[2]
RUN_SECONDS = 900
PARAMS = """\
data: {}
prepare: {image_size: 64}
train: {base: yolo11n.yaml, epochs: 4, global_batch: 8, optimizer: AdamW, lr0: 0.001, close_mosaic_epochs: 0}
evaluate: {}
gate: {}
export: {}
"""
_CONFIG = """\
[core]
    remote = shared
    no_scm = true
    analytics = false
    check_update = false
    autostage = false
['remote "shared"']
    url = {remote}
"""


@dataclass
class LocalRun:
    """A run of prepare and train, of `nodes` nodes of one rank each, below `folder`."""

    folder: Path
    nodes: int

    def __post_init__(self) -> None:
        self.engine = LocalEngine(self.folder)
        self.id = run_id_of("demo", str(self.folder), "c", "p")
        self.board = Board(self.engine.bucket, self.id)

    def submit(self, **more: str) -> None:
        """Begin it; `more` are settings of its stages."""
        source = self.folder / "source"
        write_yolo_dataset(source, a_dataset(train=32, val=8, test=4))
        code = code_archive(ROOT, snapshot(ROOT).commit, self._beside(source))
        self.board.put_file(CODE, code)
        settings = {
            "NIGHTOWL_DEVICE": "cpu",
            "NIGHTOWL_SOURCES": json.dumps({"demo": str(source)}),
            "NIGHTOWL_CHECKPOINTS": str(self.folder / "checkpoints"),
            "NIGHTOWL_CHECKPOINT_EVERY_SECONDS": "1",
            "NIGHTOWL_NUM_WORKERS": "0",
            **more,
        }
        now = datetime.now(UTC)
        job = Job(
            run_id=self.id,
            detector="demo",
            stages=("prepare", "train"),
            code_commit="c" * 40,
            code_sha256=sha256_bytes(code),
            lock_sha256="0" * 64,
            environment=Environment(),
            settings=settings,
            source=str(source),
            nodes=self.nodes,
            min_nodes=self.nodes,
            nproc=1,
            deadline=now + timedelta(hours=1),
            heartbeat_seconds=0.5,
            heartbeat_old_seconds=20,
            submitted_at=now,
        )
        self.engine.submit(job)

    def until(self, what: str, holds: Callable[[], bool], renewing: bool = True) -> None:
        """Wait, and replace nodes that died in the meantime, as whoever drives a run would."""
        deadline = time.monotonic() + RUN_SECONDS
        while not holds():
            if renewing:
                self.engine.renew(self.id)
            if time.monotonic() > deadline:
                pytest.fail(f"waited {RUN_SECONDS} s for {what}\n{self.log()}")
            time.sleep(0.2)

    def done(self) -> str:
        """Drive the run to its end; returns the digest of the weights."""
        self.until("the end", lambda: self.board.end() is not None)
        end = self.board.end()
        assert end is not None and end.how == "done", f"{end}\n{self.log()}"
        (weights,) = {sha256_file(path) for path in self.folder.glob("nodes/*/*/tree/out/demo/train/best.pt")}
        self.until("its nodes to leave", lambda: self.engine.tear_down(self.id).nothing, renewing=False)
        return weights

    def leader(self) -> NodeBeat | None:
        """The heartbeat of whoever trains as rank 0 now."""
        newest = self.board.newest_generation()
        if newest is None or self.board.generation_end(newest.number) is not None:
            return None
        beats = {beat.instance: beat for beat in self.board.beats()}
        beat = beats.get(newest.members[0].instance)
        return beat if beat is not None and beat.state == "training" else None

    def trains_after(self, step: int) -> bool:
        leader = self.leader()
        return leader is not None and (leader.taken or 0) > step

    def number_of(self, rank: int) -> int:
        """Which of the engine's nodes has `rank` in the newest generation."""
        newest = self.board.newest_generation()
        assert newest is not None
        return int(newest.members[rank].instance.split("-")[1])

    def take_back(self, number: int) -> None:
        """A notice, as a machine that is told to shut down gives it."""
        os.kill(self._pid(number), signal.SIGTERM)

    def vanish(self, *numbers: int) -> None:
        """All of a node's processes at once, as when its machine loses power."""
        for pid in self.freeze(*numbers):
            os.kill(pid, signal.SIGKILL)

    def freeze(self, *numbers: int) -> list[int]:
        """Not a word from a node any more, and no connection that breaks, as when its link is cut; returns its processes."""
        pids = [each for number in numbers for each in (self._pid(number), *descendants(self._pid(number)))]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        return pids

    def steps(self) -> list[tuple[int, int]]:
        """Steps taken and done again, of each time that a rank 0 trained and could tell of it."""
        found = [event for event in self.board.events() if event.kind == "steps" and event.steps]
        return [(event.steps, event.redone) for event in sorted(found, key=lambda event: event.start)]

    def log(self) -> str:
        lines = [f"{line.instance}: {line.text}" for line in self.board.logs({})]
        return "\n".join(lines[-80:])

    def _pid(self, number: int) -> int:
        pid = self.engine.node_pid(self.id, number)
        assert pid is not None
        return pid

    def _beside(self, source: Path) -> dict[str, bytes]:
        config = _CONFIG.format(remote=self.folder / "remote").encode()
        return {**pinned_inputs(source, self.folder), ".dvc/config": config, "detectors/demo/params.yaml": PARAMS.encode()}


def pinned_inputs(source: Path, folder: Path) -> dict[str, bytes]:
    """What pinning the data in `source` writes down for prepare and train, by path in the code; `folder` is for scratch."""
    pinned = folder / "pinned"
    pinned.mkdir(exist_ok=True)
    manifest, findings = build_manifest(source, DataParams(), folder / "pins.json")
    write_manifest(pinned / "manifest.jsonl", manifest)
    write_findings(pinned / "findings.json", list(findings))
    write_record(pinned / "base.json", BaseWeights(kind="yaml", name="yolo11n.yaml", sha256=None))
    (pinned / "golden.txt").write_text(golden_text(()))
    (pinned / "previous.json").write_text("null\n")
    return {f"inputs/demo/{path.name}": path.read_bytes() for path in pinned.iterdir()}
