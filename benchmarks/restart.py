"""How long it takes from the start of a process to the first optimizer step after a kill: `python -m benchmarks.restart`.

A training of yolo11n (320 px, batch 8, noise with squares) is killed by SIGKILL within an epoch and started again, some times
over; each start says when it had come how far. Wall time: on a machine with other work, it says little. What is ours of it is
all but Python's imports, the model that ultralytics builds, and the step itself.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

STEPS_BETWEEN_KILLS = 6
PHASES = ("imports", "inputs and images", "state read", "model and optimizer built", "first step")
NOT_OURS = ("imports", "model and optimizer built", "first step")


def child(root: Path) -> None:
    """Train on from what is there, say when each phase was over (time.time), and be killed at a step."""
    from benchmarks.training import BATCH
    from nightowl.checkpoint.place import checkpoint_run
    from nightowl.params import Params
    from nightowl.settings import Settings
    from nightowl.stages.training_inputs import identity_of, pinned, prepared
    from nightowl.stages.workspace import Workspace
    from nightowl.training.group import Alone
    from nightowl.training.job import train_on
    from nightowl.training.stopping import AnyStop
    from nightowl.training.watch import Start, Unwatched

    over: dict[str, float] = {}

    def mark(phase: str) -> None:
        over.setdefault(phase, time.time())

    def marked(phase: str, function: Callable[[], object]) -> Callable[[], object]:
        def call() -> object:
            try:
                return function()
            finally:
                mark(phase)

        return call

    mark("imports")
    train = {
        "base": "yolo11n.yaml",
        "epochs": 1000,
        "global_batch": BATCH,
        "optimizer": "AdamW",
        "lr0": 0.001,
        "precision": "fp32",
    }
    params = Params.model_validate({"prepare": {"image_size": 320}, "train": train})
    settings = Settings(home=root / "home", device="cpu", sources={"b": str(root)}, num_workers=0, checkpoint_every_seconds=1)
    workspace = Workspace(root, "b", settings)
    base, dataset = pinned(workspace)
    job = prepared(params, workspace, dataset, base)
    mark("inputs and images")

    class Watched(Unwatched):
        steps = 0

        def started(self, start: Start) -> None:
            mark("model and optimizer built")

        def batch_done(self, epoch: int, batch: int, losses: dict[str, float], waited_seconds: float) -> None:
            mark("first step")
            self.steps += 1
            if self.steps == STEPS_BETWEEN_KILLS:
                print(json.dumps(over), flush=True)
                os.kill(os.getpid(), signal.SIGKILL)

    with (
        checkpoint_run(settings, "b", identity_of(params, workspace, base), lambda line: None) as kept,
        mock.patch.object(kept, "newest", marked("state read", kept.newest)),
    ):
        train_on(job, "cpu", Alone(), kept, Watched(), AnyStop(()))


def one_start(root: Path) -> dict[str, float]:
    """Seconds of each phase of one start."""
    begun = time.time()
    command = [sys.executable, "-m", "benchmarks.restart", "--child", str(root)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.returncode
    at = [begun, *(json.loads(done.stdout.splitlines()[-1])[phase] for phase in PHASES)]
    return {phase: later - earlier for phase, earlier, later in zip(PHASES, at, at[1:], strict=False)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        child(given.child)
        return
    from benchmarks.training import Size, make_images
    from nightowl.data.manifest import write_manifest
    from nightowl.files import write_record
    from nightowl.settings import Settings
    from nightowl.stages.workspace import Workspace
    from nightowl.training.base import BaseWeights

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        workspace = Workspace(root, "b", Settings(home=root / "home"))
        write_manifest(workspace.dataset, make_images(root, Size(160, 1, 320)))
        write_record(workspace.base, BaseWeights(kind="yaml", name="yolo11n.yaml", sha256=None))
        one_start(root)
        starts = [one_start(root) for _ in range(given.kills)]
    medians = {phase: statistics.median(start[phase] for start in starts) for phase in PHASES}
    whole = sum(medians.values())
    for phase, seconds in medians.items():
        print(f"{phase:28} {seconds:6.2f} s  {seconds / whole:4.0%}  {'' if phase in NOT_OURS else 'ours'}")
    ours = sum(seconds for phase, seconds in medians.items() if phase not in NOT_OURS)
    print(f"{'all':28} {whole:6.2f} s, ours {ours:.2f} s")


if __name__ == "__main__":
    main()
