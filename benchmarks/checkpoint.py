"""What saving costs a training at the default cadence, and how long a state takes to come back.

    python -m benchmarks.checkpoint [--folder FOLDER] [--models yolo11n yolo11x]

A state is what a training with AdamW needs: weights, EMA and two moments in fp32. Steps are real ones of yolo11n (160 px, batch
2, fp32); the same steps run with and without saving in turn, with a state in each so many steps, and the extra time of a state
is put in proportion to the time between two at the default cadence. It is processor time of all threads: as if no core were
free for the thread that writes.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from ultralytics.nn import tasks

from nightowl.checkpoint.commits import Moment
from nightowl.checkpoint.identity import Identity
from nightowl.checkpoint.plan import Cadence, Keep
from nightowl.checkpoint.run import Run
from nightowl.checkpoint.saver import Saver
from nightowl.checkpoint.serialise import State
from nightowl.cloud.bucket import FolderBucket
from nightowl.training.architecture import architecture

ROUNDS, STEPS_A_STATE, STATES = 5, 4, 3
IMAGE_SIZE, BATCH = 160, 2


class Training:
    """Steps on random images, and the state that they make."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        self.model = tasks.DetectionModel(dict(architecture(f"{name}.yaml")), nc=80, verbose=False)
        self.model.args = type("Gains", (), {"box": 7.5, "cls": 0.5, "dfl": 1.5, "epochs": 100, "cls_pw": 0.0})()
        self.ema = deepcopy(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.batch: dict[str, Any] = {
            "img": torch.rand(BATCH, 3, IMAGE_SIZE, IMAGE_SIZE),
            "cls": torch.randint(0, 80, (BATCH, 1)).float(),
            "bboxes": torch.rand(BATCH, 4) * 0.3 + 0.3,
            "batch_idx": torch.arange(BATCH).float(),
        }

    def step(self) -> None:
        losses, _ = self.model(self.batch)
        self.optimizer.zero_grad()
        losses.sum().backward()
        self.optimizer.step()

    def fill(self) -> None:
        """The optimizer's moments, without a forward pass."""
        for parameter in self.model.parameters():
            parameter.grad = torch.rand_like(parameter)
        self.optimizer.step()

    def capture(self) -> State:
        whole = {"model": self.model.state_dict(), "ema": self.ema.state_dict(), "optimizer": self.optimizer.state_dict()}
        return deepcopy(whole)


def a_run(folder: Path) -> Run:
    identity = Identity(dataset_sha256="0" * 64, params={}, base={}, code={}, libraries={})
    return Run(FolderBucket(folder), None, identity, Keep(), print)


def steps_with_states(training: Training, folder: Path) -> tuple[float, float]:
    """Processor seconds of all steps with their states, and the cost that the saver itself counts for one."""
    with Saver(a_run(folder), Cadence(), print) as saver:
        begun = time.process_time()
        for number in range(STEPS_A_STATE * STATES):
            training.step()
            if number % STEPS_A_STATE == STEPS_A_STATE // 2:
                saver.save(training.capture, Moment(step=number, epoch=0, reason="time"))
        saver.flush()
        return time.process_time() - begun, saver.cost_seconds


def steps_alone(training: Training) -> float:
    begun = time.process_time()
    for _ in range(STEPS_A_STATE * STATES):
        training.step()
    return time.process_time() - begun


def overhead(folder: Path) -> None:
    training = Training("yolo11n")
    training.step()
    measured, counted = [], []
    for number in range(ROUNDS):
        seconds, cost = steps_with_states(training, folder / str(number))
        measured.append((seconds - steps_alone(training)) / STATES)
        counted.append(cost)
        shutil.rmtree(folder / str(number))
    for what, each in (("more than without", measured), ("as the saver counts", counted)):
        median = statistics.median(each)
        share = median / Cadence().interval_seconds(median)
        print(f"yolo11n: a state costs {median:.3f} s ({what}; {min(each):.3f} to {max(each):.3f}): {share:.2%} of the time")


def back(name: str, folder: Path) -> None:
    """Save and restore once a round, without steps."""
    training = Training(name)
    training.fill()
    rows: dict[str, list[float]] = {"capture": [], "write": [], "restore": []}
    num_bytes, interval = 0, 0.0
    for number in range(ROUNDS):
        run = a_run(folder / str(number))
        with Saver(run, Cadence(), print) as saver:
            rows["capture"].append(timed(lambda: saver.save(training.capture, Moment(step=1, epoch=0, reason="time"))))
            rows["write"].append(timed(saver.flush))
            interval = Cadence().interval_seconds(saver.cost_seconds)
        again = a_run(folder / str(number))
        rows["restore"].append(timed(again.newest))
        found = again.newest()
        assert found is not None
        num_bytes = found.commit.num_bytes
        shutil.rmtree(folder / str(number))
    told = ", ".join(f"{what} {statistics.median(seconds):.2f} s" for what, seconds in rows.items())
    print(f"{name}: {num_bytes / 1e6:.0f} MB, {told}; one each {interval:.0f} s")


def timed(function: Callable[[], object]) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, help="a disk to write to; default: the temporary folder")
    parser.add_argument("--models", nargs="*", default=["yolo11n", "yolo11x"])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        overhead(Path(folder))
        for name in chosen.models:
            back(name, Path(folder))


if __name__ == "__main__":
    main()
