"""Stage train: fit on `train`, choose the epoch on `val`, publish the weights with what they are and how they came about.

A training that is stopped goes on from its last step when it is run again. With `nproc` above 1 it runs as so many ranks.
"""

from functools import partial
from pathlib import Path
from typing import Any

import torch

from nightowl.checkpoint.identity import Identity
from nightowl.checkpoint.place import checkpoint_run
from nightowl.checkpoint.serialise import State
from nightowl.data.golden import read_golden, refuse_barred
from nightowl.data.manifest import Manifest
from nightowl.errors import SettingsError, StageFailed
from nightowl.evaluation.device import torch_device
from nightowl.evaluation.model_file import ModelRecord
from nightowl.files import write_atomic, write_record
from nightowl.params import Params
from nightowl.settings import Settings
from nightowl.stages.frame import main
from nightowl.stages.looking_on import looked_on
from nightowl.stages.training_inputs import identity_of, pinned, prepared
from nightowl.stages.workspace import Workspace
from nightowl.training.base import BaseWeights
from nightowl.training.display import Display
from nightowl.training.group import Alone
from nightowl.training.job import train_on
from nightowl.training.launch import Hosts, train_in_ranks
from nightowl.training.memory_use import memory_in_words
from nightowl.training.plan import arguments
from nightowl.training.progress import Progress, results_csv
from nightowl.training.recorded import training_record
from nightowl.training.state import compute_of, progress_of
from nightowl.training.stopping import SignalStop
from nightowl.training.yolo import deliver


def run(params: Params, workspace: Workspace, out: Path) -> None:
    """Write best.pt, model.json, training.json and results.csv to `out`.

    Raises:
        DataError, WeightsError: before anything is trained. StageFailed: the training came to nothing.
        Preempted, KeyboardInterrupt: stopped; the same call goes on.
    """
    base, dataset = pinned(workspace)
    identity = identity_of(params, workspace, base)
    state = _finished(workspace, identity)
    if state is not None:
        print(_nothing_to_train(progress_of(state), workspace.settings))
    else:
        refuse_barred(dataset, read_golden(workspace.golden), read_golden(workspace.barred))
        if workspace.settings.nproc * workspace.settings.nnodes > 1:
            prepared(params, workspace, dataset, base)  # before there are ranks that would wait for one another
            train_in_ranks(workspace.root, workspace.detector, Hosts.of(workspace.settings))
        else:
            _train_here(params, workspace, dataset, base, identity)
        state = _finished(workspace, identity)
    if state is None:
        raise StageFailed("train: ended, but its last state is not among the checkpoints; run it again")
    _publish(params, dataset, base, state, out)


def _nothing_to_train(progress: Progress, settings: Settings) -> str:
    ranks = settings.nproc * settings.nnodes
    unused = f"; the {ranks} ranks were not needed" if ranks > 1 else ""
    return (
        f"this training is finished ({progress.epoch} epochs, the best is {progress.best_epoch}): nothing is left to train, "
        f"its weights are published again{unused}. To train anew, change its params (train.seed will do) or data"
    )


def _finished(workspace: Workspace, identity: Identity) -> State | None:
    """The last state of a training that left nothing to train."""
    with checkpoint_run(workspace.settings, workspace.detector, identity, _quiet) as kept:
        newest = kept.newest()
    return newest.state if newest and newest.commit.moment.finished else None


def _train_here(params: Params, workspace: Workspace, dataset: Manifest, base: BaseWeights, identity: Identity) -> None:
    device = _device(workspace.settings)
    job = prepared(params, workspace, dataset, base)
    with (
        Display(memory=partial(memory_in_words, device)) as display,
        checkpoint_run(workspace.settings, workspace.detector, identity, display.note) as kept,
        looked_on(display, workspace, identity.key(), device) as watcher,
        SignalStop().listening() as stop,
    ):
        train_on(job, device, Alone(), kept, watcher, stop)


def _device(settings: Settings) -> str:
    device, present = torch_device(settings.device), torch.cuda.device_count()
    if device != "cpu" and not (settings.device == "auto" or int(settings.device) < present):
        raise SettingsError(
            f"device: {settings.device}: expected one of the {present} CUDA devices here (from 0), `auto` or `cpu`"
        )
    return device


def _publish(params: Params, dataset: Manifest, base: BaseWeights, state: State, out: Path) -> None:
    values: Any = state
    progress, compute = progress_of(state), compute_of(state)
    train_args = arguments(params.train, params.prepare.image_size, compute)
    delivered = deliver(values["description"], dataset.classes, values["best"], out / "best.pt", train_args)
    write_atomic(out / "results.csv", results_csv(progress))
    record = ModelRecord(
        architecture=delivered.architecture,
        classes=dataset.classes,
        image_size=params.prepare.image_size,
        head=delivered.head,
        weights_sha256=delivered.sha256,
        base=base.name,
        base_sha256=base.sha256,
        epochs_done=progress.epoch,
        best_epoch=progress.best_epoch,
        tiling=params.prepare.tiling,
    )
    write_record(out / "model.json", record)
    write_record(out / "training.json", training_record(state))


def _quiet(line: str) -> None:
    """What is passed over is said by the training itself, which looks again."""


if __name__ == "__main__":
    main("train", run)
