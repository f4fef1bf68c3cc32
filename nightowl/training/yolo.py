"""Ultralytics, and the only file that imports it: loading weights, publishing them, and one training.

Its own loop trains; what it would do besides is off or replaced: integrations, plots, downloads, a validation more at the
end, rectangular validation batches. What is used of it is held by tests/training/test_ultralytics_contract.py.
"""

# ruff: noqa: E402 - ultralytics reads its environment when imported

import contextlib
import io
import random
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import PIL.Image
import torch

from nightowl.errors import ParamsError, StageFailed, WeightsError
from nightowl.files import sha256_bytes, sha256_file, write_atomic
from nightowl.training.architecture import DETECTION_HEADS
from nightowl.training.plan import PLACES, Plan, arguments
from nightowl.training.quiet import silence
from nightowl.training.watch import EpochEnd, Start, Watcher

silence()

from ultralytics.cfg import get_cfg
from ultralytics.data import build_yolo_dataset
from ultralytics.data.augment import Mosaic
from ultralytics.models.yolo.detect import DetectionTrainer
from ultralytics.nn import tasks
from ultralytics.utils import DEFAULT_CFG_KEYS, LOGGER, SETTINGS, patches
from ultralytics.utils.downloads import GITHUB_ASSETS_NAMES, attempt_download_asset
from ultralytics.utils.torch_utils import unwrap_model

INTEGRATIONS = ("clearml", "comet", "dvc", "mlflow", "raytune", "tensorboard", "wandb")
# Should somebody have imported ultralytics before us: the same again, in memory only.
dict.update(SETTINGS, {"sync": False, **dict.fromkeys(INTEGRATIONS, False)})
tasks.SAFE_LOAD = True
LOGGER.setLevel("ERROR")
# Its own opener, put in Pillow's place for the whole process, asks for more packages when an image is broken.
PIL.Image.open = patches._image_open

MAP50, MAP50_95 = "metrics/mAP50(B)", "metrics/mAP50-95(B)"


@dataclass(frozen=True)
class Delivered:
    """What was published: the architecture's name, its head, and the SHA-256 of the file."""

    architecture: str
    head: Literal["raw", "end2end"]
    sha256: str


def train(plan: Plan, watcher: Watcher) -> None:
    """Train by `plan` to its last epoch, telling `watcher`; whatever that raises ends it.

    Raises:
        StageFailed: the loss is no number any more, images were left out, or the device's memory does not suffice.
        WeightsError: the base weights are not a detector's. ParamsError: a value that ultralytics does not take.
    """
    try:
        _Trainer(plan, watcher).train()
    except torch.OutOfMemoryError as error:
        raise StageFailed(
            f"{plan.device}: out of memory at {plan.image_size} px; lower prepare.image_size, train.global_batch "
            f"({plan.params.global_batch}), or take a smaller model: {str(error).splitlines()[0]}"
        ) from error


def load_torch_model(path: Path, sha256: str) -> torch.nn.Module:
    """The detector in `path` as an fp32 module, unfused, in eval mode, on the CPU. Its digest is compared before it is opened.

    Raises:
        WeightsError: absent, another digest, unreadable, or not a detector.
    """
    if not path.is_file():
        raise WeightsError(f"{path}: no such weights")
    found = sha256_file(path)
    if found != sha256:
        raise WeightsError(f"{path}: expected weights of sha256 {sha256[:12]}…, found {found[:12]}…; train again or restore it")
    model = _load(path)
    head = model.model[-1]
    head.end2end = _has_end2end(head)
    module: torch.nn.Module = model.float().eval()
    return module


def deliver(checkpoint: Path, target: Path) -> Delivered:
    """Publish the EMA weights of a training checkpoint, fp16, at `target`: nothing else, so equal weights are equal files.

    The file opens with `ultralytics.YOLO(target)`.
    """
    model = _load(checkpoint)
    args = {key: value for key, value in dict(model.args).items() if key in DEFAULT_CFG_KEYS and key not in PLACES}
    model.args, model.criterion = args, None
    del model.pt_path
    for parameter in model.half().parameters():
        parameter.requires_grad = False
    buffer = io.BytesIO()
    torch.save({"epoch": -1, "model": model, "ema": None, "train_args": args}, buffer)
    write_atomic(target, buffer.getvalue())
    head: Literal["raw", "end2end"] = "end2end" if _has_end2end(model.model[-1]) else "raw"
    return Delivered(Path(model.yaml["yaml_file"]).name, head, sha256_bytes(buffer.getvalue()))


def download_weights(name: str, folder: Path) -> Path:
    """Download published weights into `folder`, which has them whole or not at all. Raises WeightsError."""
    if name not in GITHUB_ASSETS_NAMES:
        raise WeightsError("ultralytics publishes no weights of that name")
    print(f"download: {name}, as published by ultralytics, to {folder}", file=sys.stderr)
    try:
        got = Path(attempt_download_asset(Path(silence().name) / name))
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / f".{got.name}.part"
        shutil.copyfile(got, beside)
    except (OSError, MemoryError) as error:
        raise WeightsError(f"the download failed ({' '.join(str(error).split())})") from error
    return beside.replace(folder / got.name)


def _load(path: Path) -> Any:
    """The detection model in a .pt, fp32. Raises WeightsError when it cannot be opened, or is no detector."""
    try:
        model, _ = tasks.load_checkpoint(_plain_name(path))
    except (OSError, RuntimeError, TypeError, ValueError, LookupError, AttributeError, ModuleNotFoundError) as error:
        detail = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise WeightsError(f"{path}: expected weights that ultralytics can open, got {detail}") from error
    head = type(model.model[-1]).__name__
    if head not in DETECTION_HEADS:
        raise WeightsError(
            f"{path}: expected a detector (head {' or '.join(DETECTION_HEADS)}), found a model with the head {head}"
        )
    return model


def _plain_name(path: Path) -> str:
    """A link to `path`: ultralytics looks elsewhere for names with an apostrophe, or with yolov5 in them."""
    link = Path(silence().name) / f"{sha256_bytes(str(path.absolute()).encode())[:16]}.pt"
    link.unlink(missing_ok=True)
    link.symlink_to(path.absolute())
    return str(link)


def _has_end2end(head: Any) -> bool:
    return getattr(head, "one2one_cv2", None) is not None


def _checked(given: dict[str, object]) -> dict[str, object]:
    """The arguments, if ultralytics takes them all."""
    try:
        get_cfg(overrides=given)
    except (TypeError, ValueError, SyntaxError) as error:
        raise ParamsError(f"train: {' '.join(str(error).split())}") from error
    return given


class _Trainer(DetectionTrainer):  # type: ignore[misc]
    """Ultralytics' trainer on our data and base weights, that tells a watcher and nobody else."""

    def __init__(self, plan: Plan, watcher: Watcher) -> None:
        self.plan = plan
        self.watcher = watcher
        self.num_batches_done = 0
        self.notes: list[str] = []
        given = plan.resume or plan.base
        links = {"model": _plain_name(given)} if given else {}
        resumed = {"resume": links["model"]} if plan.resume else {}
        super().__init__(overrides=_checked({**arguments(plan), **links, **resumed}))

    def run_callbacks(self, event: str) -> None:
        """Ours only: what integrations add to the lists of callbacks is never called."""
        match event:
            case "on_train_start":
                self._on_train_start()
            case "on_train_epoch_start":
                self._on_epoch_start()
            case "on_train_batch_end":
                self._on_batch_end()
            case "on_train_epoch_end":
                self.watcher.validating(self.epoch + 1)
            case "on_model_save":
                self._on_saved()

    def get_dataset(self) -> dict[str, object]:
        view = self.plan.view
        return {
            "path": str(view.folder),
            "train": str(view.train_list),
            "val": str(view.val_list),
            "names": dict(enumerate(view.classes)),
            "nc": len(view.classes),
            "channels": 3,
        }

    def build_dataset(self, img_path: str, mode: str = "train", batch: int | None = None) -> Any:
        """Square batches for val too, as is shipped; mosaics of the whole set, so that a cache in memory changes nothing."""
        stride = max(int(unwrap_model(self.model).stride.max()), 32)
        with contextlib.redirect_stdout(io.StringIO()):  # the bar of its cache cannot be turned off
            dataset = build_yolo_dataset(self.args, img_path, batch, self.data, mode=mode, rect=False, stride=stride)
        _refuse_missing(Path(img_path), dataset.im_files)
        for transform in _flat(dataset.transforms):
            if isinstance(transform, Mosaic):
                transform.buffer_enabled = False
        return dataset

    def setup_model(self) -> Any:
        if self.resume:
            return super().setup_model()
        if self.plan.base is None:
            assert self.plan.architecture is not None, "one of the two is given"
            self.model = self.get_model(cfg=dict(self.plan.architecture), verbose=False)
        else:
            weights = _load(self.plan.base)
            if len(weights.names) != self.data["nc"]:
                classes = f"{len(weights.names)} classes, the data {self.data['nc']}"
                self.notes.append(f"the base weights know {classes}: what tells classes apart is learnt anew")
            self.model = self.get_model(cfg=weights.yaml, weights=weights, verbose=False)
        return None

    def final_eval(self) -> None:
        """Nothing: evaluation measures the delivered weights, by the code that measures every other form of them."""

    def _on_train_start(self) -> None:
        name, rate = type(self.optimizer).__name__, min(group["initial_lr"] for group in self.optimizer.param_groups)
        if self.plan.params.optimizer == "auto":
            self.notes.append("optimizer: auto chose it; train.lr0 and train.momentum have no effect")
        self.watcher.started(
            Start(
                first_epoch=self.start_epoch + 1,
                num_epochs=self.epochs,
                num_batches=len(self.train_loader),
                num_images=len(self.train_loader.dataset),
                optimizer=f"{name} lr {rate:g}",
                notes=tuple(self.notes),
            )
        )

    def _on_epoch_start(self) -> None:
        """Randomness of an epoch is that of its number, whatever ran before it in this process."""
        self.num_batches_done = 0
        seed = self.plan.params.seed + 1000 * (self.epoch + 1)
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)

    def _on_batch_end(self) -> None:
        self.num_batches_done += 1
        loss = float(sum(self.tloss.values()))
        if not np.isfinite(loss):
            raise StageFailed(
                f"the loss became {loss} in epoch {self.epoch + 1}, batch {self.num_batches_done}: expected a number; lower "
                f"train.lr0 ({self.plan.params.lr0:g}) or lengthen train.warmup_epochs ({self.plan.params.warmup_epochs:g})"
            )
        self.watcher.batch_done(self.epoch + 1, self.num_batches_done, loss)

    def _on_saved(self) -> None:
        self.watcher.epoch_done(
            EpochEnd(
                epoch=self.epoch + 1,
                losses={name: float(value) for name, value in self.tloss.items()},
                map50=float(self.metrics[MAP50]),
                map50_95=float(self.metrics[MAP50_95]),
                is_best=bool(self.best_fitness == self.fitness),  # by which upstream decides to write best.pt
                finished=bool(self.stop),
                last=self.last,
                best=self.best,
                history=self.csv,
            )
        )


def _flat(transform: Any) -> list[Any]:
    """A transform and all those inside it."""
    inside = [*getattr(transform, "transforms", []), getattr(transform, "pre_transform", None)]
    return [transform, *(each for part in inside if part is not None for each in _flat(part))]


def _refuse_missing(listed: Path, found: list[str]) -> None:
    missing = sorted(set(listed.read_text(encoding="utf-8").splitlines()) - set(found))
    if missing:
        named = ", ".join(str(Path(path).resolve()) for path in missing[:3])
        raise StageFailed(f"ultralytics left {len(missing)} of the images out, the first: {named}; remove them from the source")
