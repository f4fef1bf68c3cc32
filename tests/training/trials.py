"""What the processes of tests run: whole trainings on made-up images, that write how they ended."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import torch

from nightowl.training.group import Group
from nightowl.training.loop import Training
from nightowl.training.progress import results_csv
from nightowl.training.state import capture, digest
from nightowl.training.stopping import SaveRequest, SignalStop
from tests.training.standins import FolderStore, a_plan, a_training

EPOCHS = 3


def make(group: Group, folder: Path, **options: object) -> Training:
    """A training with everything in it that an epoch may change: warm-up, multi-scale, patience, a store in `folder`."""
    plan = a_plan(num_images=10, epochs=EPOCHS, multi_scale=0.5, warmup_epochs=1.5, patience_epochs=5)
    store = FolderStore(folder, every=2) if group.rank == 0 else None
    found = group.share(store.newest() if store else None)
    return a_training(plan, group, store, found=found, **options)  # type: ignore[arg-type]


def whole(group: Group, folder: Path) -> None:
    """Train to the end, from whatever is in the folder; the digest of the final state goes to done.json.

    Each forward pass leaves a byte in the file `events`, by which a killer sees how far it is.
    """

    def tell(phase: str, epoch: int, step: int) -> None:
        with (folder / "events").open("ab") as file:
            file.write(b".")

    finish(make(group, folder, fault=tell), group, folder)


def finish(training: Training, group: Group, folder: Path) -> None:
    progress = training.train()
    if group.rank == 0:
        state = capture(training.learner, progress.model_copy(update={"row_seconds": (), "seconds": 0.0}))
        done = {
            "digest": digest(state),
            "rows": progress.rows,
            "worlds": [world.model_dump() for world in progress.worlds],
            "shrunk": [shrink.model_dump() for shrink in progress.shrunk],
            "csv": results_csv(progress),
            "losses": training.watcher.losses,  # type: ignore[attr-defined]
        }
        (folder / "done.json").write_text(json.dumps(done))


def stopped_at_step_4(group: Group, folder: Path) -> None:
    """One rank alone gets SIGTERM, in the middle of an epoch."""
    with SignalStop().listening() as stop:

        def fault(phase: str, epoch: int, step: int) -> None:
            if (phase, epoch, step) == ("training", 1, 1) and group.rank == group.world_size - 1:
                os.kill(os.getpid(), signal.SIGTERM)

        finish(make(group, folder, stop=stop, fault=fault), group, folder)


def asked_to_save(group: Group, folder: Path) -> None:
    """The last rank alone is asked for a state, in the middle of an epoch whose states are far apart."""
    please = folder / f"please-{group.rank}"

    def fault(phase: str, epoch: int, step: int) -> None:
        if (phase, epoch, step) == ("training", 1, 0) and group.rank == group.world_size - 1:
            please.touch()

    training = make(group, folder, fault=fault)
    training.request = SaveRequest(please)
    if training.store is None:
        training.train()
        return
    training.store.every = 1000  # type: ignore[attr-defined]
    finish(training, group, folder)
    saved = [(moment.step, moment.reason) for moment in training.store.moments]  # type: ignore[attr-defined]
    (folder / "saved.json").write_text(json.dumps(saved))


def stopped_in_validation(group: Group, folder: Path) -> None:
    with SignalStop().listening() as stop:

        def fault(phase: str, epoch: int, step: int) -> None:
            if phase == "validation" and epoch == 1:
                os.kill(os.getpid(), signal.SIGTERM)

        finish(make(group, folder, stop=stop, fault=fault), group, folder)


def memory_runs_out(group: Group, folder: Path) -> None:
    """On the last rank at epoch 2, and in its validation; BatchNorm is frozen, so that halves equal the whole."""
    faults = []

    def fault(phase: str, epoch: int, step: int) -> None:
        if epoch == 1 and group.rank == group.world_size - 1 and phase not in faults:
            faults.append(phase)
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    without_memory_trouble(group, folder, fault=fault)


def without_memory_trouble(group: Group, folder: Path, **options: object) -> None:
    training = make(group, folder, **options)
    training.pieces = replace(training.pieces, frozen=("",))
    finish(training, group, folder)
