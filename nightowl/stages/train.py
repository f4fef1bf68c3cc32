"""Stage train: fit on `train`, choose the epoch on `val`, publish the weights with what they are and how they came about.

A training that is stopped goes on from its last whole epoch when it is run again.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import torch

import nightowl.training
from nightowl.data import images, manifest
from nightowl.data.golden import read_golden, refuse_barred
from nightowl.data.manifest import Manifest, read_manifest
from nightowl.data.source import source_folder
from nightowl.errors import SettingsError, WeightsError
from nightowl.evaluation.device import torch_device
from nightowl.evaluation.model_file import ModelRecord
from nightowl.files import sha256_file, write_record
from nightowl.params import Params
from nightowl.settings import Settings, home_of
from nightowl.stages.frame import main
from nightowl.stages.workspace import Workspace
from nightowl.training.architecture import architecture
from nightowl.training.base import BaseWeights
from nightowl.training.commits import BEST, HISTORY, LAST, Commit, commit, latest
from nightowl.training.display import Display
from nightowl.training.memory import available_bytes, decoded_bytes, fits_in_memory
from nightowl.training.plan import Plan
from nightowl.training.runs import run_key, training_run
from nightowl.training.stopping import StopRequest, stop_requests
from nightowl.training.view import View, write_view
from nightowl.training.watch import EpochEnd, Start, Watcher
from nightowl.training.weights import base_file
from nightowl.training.yolo import deliver, train

# The source that decides what is trained; it is among what the pipeline names as this stage's dependencies.
_CODE = (Path(__file__), *map(Path, nightowl.training.__path__), Path(images.__file__), Path(manifest.__file__))


def run(params: Params, workspace: Workspace, out: Path) -> None:
    """Write best.pt, model.json and results.csv to `out`.

    Raises:
        DataError, WeightsError: before anything is trained. StageFailed: the training came to nothing.
        Preempted, KeyboardInterrupt: stopped; the same call goes on.
    """
    base = read_base(workspace.base)
    dataset = read_manifest(workspace.dataset)
    key = run_key(sha256_file(workspace.dataset), params, base, _CODE)
    with training_run(home_of(workspace.settings) / "checkpoints" / workspace.detector, key) as folder:
        found = latest(folder)
        if found is None or not found[0].finished:
            refuse_barred(dataset, read_golden(workspace.golden), read_golden(workspace.barred))
            view = write_view(dataset, source_folder(workspace.settings, workspace.detector), folder / "view")
            plan = _plan(params, workspace.settings, dataset, view, base, folder / "work")
            found = _train(plan, folder, found)
        done, files = found
        _publish(params, dataset, base, done, files, out)
        shutil.rmtree(folder / "work", ignore_errors=True)
        shutil.rmtree(folder / "view", ignore_errors=True)


def read_base(path: Path) -> BaseWeights:
    """The pinned base weights. Raises WeightsError when they are not pinned, or the record is broken."""
    try:
        return BaseWeights.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise WeightsError(f"{path}: no pinned base weights; run: nightowl inputs pin DETECTOR") from None
    except ValueError as error:
        raise WeightsError(f"{path}: not a record of base weights ({error}); pin the inputs again") from error


def _plan(params: Params, settings: Settings, dataset: Manifest, view: View, base: BaseWeights, work: Path) -> Plan:
    num_bytes = decoded_bytes((*dataset.of("train"), *dataset.of("val")), params.prepare.image_size)
    return Plan(
        params=params.train,
        image_size=params.prepare.image_size,
        view=view,
        architecture=architecture(base.name) if base.kind == "yaml" else None,
        base=base_file(base, settings),
        work=work,
        resume=None,
        device=_device(settings.device),
        num_workers=settings.num_workers,
        keep_in_memory=fits_in_memory(num_bytes, available_bytes()),
    )


def _device(setting: str) -> str:
    device, present = torch_device(setting), torch.cuda.device_count()
    if device != "cpu" and not (setting == "auto" or (setting.isdigit() and int(setting) < present)):
        raise SettingsError(f"device: {setting}: expected one of the {present} CUDA devices here (from 0), `auto` or `cpu`")
    return device


def _train(plan: Plan, folder: Path, found: tuple[Commit, Path] | None) -> tuple[Commit, Path]:
    """Train to the end, from the commit `found` where there is one; returns the last commit."""
    shutil.rmtree(plan.work, ignore_errors=True)
    if found:
        _restore(found[1], plan.work)
        plan = replace(plan, resume=found[1] / LAST)
    with Display() as display, stop_requests() as request:
        train(plan, _Keeper(folder, found[0].best_epoch if found else 0, request, display))
    done = latest(folder)
    assert done is not None and done[0].finished, "the last epoch was committed a moment ago"
    return done


def _restore(committed: Path, work: Path) -> None:
    """Put the best weights and the history of a commit where ultralytics goes on with them."""
    (work / "weights").mkdir(parents=True)
    shutil.copyfile(committed / BEST, work / "weights" / BEST)
    shutil.copyfile(committed / HISTORY, work / HISTORY)


@dataclass
class _Keeper:
    """The watcher that commits each epoch and hears requests to stop; `shown` sees everything too."""

    folder: Path
    best_epoch: int
    request: StopRequest
    shown: Watcher

    def started(self, start: Start) -> None:
        self.request.check()
        self.shown.started(start)

    def batch_done(self, epoch: int, batch: int, loss: float) -> None:
        self.request.check()
        self.shown.batch_done(epoch, batch, loss)

    def validating(self, epoch: int) -> None:
        self.request.check()
        self.shown.validating(epoch)

    def epoch_done(self, end: EpochEnd) -> None:
        self.best_epoch = end.epoch if end.is_best else self.best_epoch
        commit(self.folder, end.epoch, self.best_epoch, end.finished, (end.last, end.best, end.history))
        self.shown.epoch_done(end)
        self.request.check()


def _publish(params: Params, dataset: Manifest, base: BaseWeights, done: Commit, files: Path, out: Path) -> None:
    delivered = deliver(files / BEST, out / BEST)
    shutil.copyfile(files / HISTORY, out / HISTORY)
    record = ModelRecord(
        architecture=delivered.architecture,
        classes=dataset.classes,
        image_size=params.prepare.image_size,
        head=delivered.head,
        weights_sha256=delivered.sha256,
        base=base.name,
        base_sha256=base.sha256,
        epochs_done=done.epoch,
        best_epoch=done.best_epoch,
    )
    write_record(out / "model.json", record)


if __name__ == "__main__":
    main("train", run)
