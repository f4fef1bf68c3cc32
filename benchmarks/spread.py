"""Do precision `auto` and memory that ran out end within the spread of three seeds? `python -m benchmarks.spread`.

Built-in circuit boards, yolo11n from random weights. Three seeds in fp32 say how far the final mAP moves by itself; then the
same seeds in `auto`, and with an out-of-memory fault in epoch 2 that halves the images a forward pass from there on, so that
BatchNorm sees other statistics. Figures are those of the best epoch on val.
"""

import argparse
import tempfile
from pathlib import Path
from unittest import mock

import torch

from nightowl.boards.folder import generate
from nightowl.data.manifest import write_manifest
from nightowl.data.pin import build_manifest
from nightowl.files import write_record
from nightowl.params import Params
from nightowl.settings import Settings
from nightowl.stages.training_inputs import pinned, prepared
from nightowl.stages.workspace import Workspace
from nightowl.training import job as jobs
from nightowl.training.base import BaseWeights
from nightowl.training.group import Alone
from nightowl.training.loop import Training
from nightowl.training.stopping import AnyStop
from nightowl.training.watch import EpochEnd, Unwatched

SEEDS = (0, 1, 2)


class Best(Unwatched):
    """The best mAP50 and mAP50-95 so far."""

    map50 = map50_95 = 0.0

    def epoch_done(self, end: EpochEnd) -> None:
        self.map50, self.map50_95 = max(self.map50, end.figures.map50), max(self.map50_95, end.figures.map50_95)


class OnceInEpochTwo:
    """A fault that raises as a full memory does, at the first forward pass of epoch 2."""

    raised = False

    def __call__(self, phase: str, epoch: int, step: int) -> None:
        if (phase, epoch) == ("training", 1) and not self.raised:
            self.raised = True
            raise torch.OutOfMemoryError("injected")


def train(root: Path, epochs: int, seed: int, precision: str, out_of_memory: bool) -> Best:
    values = {"base": "yolo11n.yaml", "epochs": epochs, "global_batch": 16, "seed": seed, "precision": precision}
    params = Params.model_validate({"prepare": {"image_size": 128}, "train": {**values, "optimizer": "AdamW", "lr0": 0.002}})
    workspace = Workspace(
        root, "b", Settings(home=root / "home", device="cpu", sources={"b": str(root / "boards")}, num_workers=0)
    )
    if not workspace.dataset.exists():
        write_manifest(workspace.dataset, build_manifest(root / "boards", params.data, root / "pins.json")[0])
        write_record(workspace.base, BaseWeights(kind="yaml", name="yolo11n.yaml", sha256=None))
    base, dataset = pinned(workspace)
    best, fault = Best(), OnceInEpochTwo()

    def training(**given: object) -> Training:
        return Training(**given, **({"fault": fault} if out_of_memory else {}))  # type: ignore[arg-type]

    with mock.patch.object(jobs, "Training", training):
        jobs.train_on(prepared(params, workspace, dataset, base), "cpu", Alone(), None, best, AnyStop(()))
    assert fault.raised == out_of_memory
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=240)
    parser.add_argument("--epochs", type=int, default=24)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        generate(root / "boards", given.images, 128)
        for precision, fault in (("fp32", False), ("auto", False), ("fp32", True)):
            found = [train(root, given.epochs, seed, precision, fault) for seed in SEEDS]
            of_mean, of_50 = ([f"{getattr(best, figure):.3f}" for best in found] for figure in ("map50_95", "map50"))
            print(
                f"{precision}{', memory ran out' if fault else '':16} mAP50-95 {' '.join(of_mean)}   mAP50 {' '.join(of_50)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
