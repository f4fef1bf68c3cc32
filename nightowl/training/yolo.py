"""Ultralytics, and the only file that imports it: loading weights, publishing them, and the pieces that a training is made of.

Of its trainer only the choice of optimizer is used; the loop is ours. What is used of it is held by
tests/training/test_ultralytics_contract.py, which also holds our loop against its own, bit for bit.
"""

# ruff: noqa: E402 - ultralytics reads its environment when imported

import io
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import PIL.Image
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from nightowl.errors import ParamsError, WeightsError
from nightowl.files import sha256_bytes, sha256_file, write_atomic
from nightowl.training.architecture import DETECTION_HEADS
from nightowl.training.plan import PLACES, Plan, arguments
from nightowl.training.quiet import silence
from nightowl.training.recompute import recompute_layers
from nightowl.training.schedule import Schedule
from nightowl.training.state import Learner
from nightowl.training.sync_norm import synchronise

silence()

from ultralytics.cfg import get_cfg
from ultralytics.models.yolo.detect import DetectionTrainer
from ultralytics.nn import tasks
from ultralytics.utils import DEFAULT_CFG_KEYS, LOGGER, SETTINGS, patches
from ultralytics.utils.downloads import GITHUB_ASSETS_NAMES, attempt_download_asset
from ultralytics.utils.loss import E2ELoss
from ultralytics.utils.torch_utils import ModelEMA, init_seeds

INTEGRATIONS = ("clearml", "comet", "dvc", "mlflow", "raytune", "tensorboard", "wandb")
# Should somebody have imported ultralytics before us: the same again, in memory only.
dict.update(SETTINGS, {"sync": False, **dict.fromkeys(INTEGRATIONS, False)})
tasks.SAFE_LOAD = True
LOGGER.setLevel("ERROR")
# Its own opener, put in Pillow's place for the whole process, asks for more packages when an image is broken.
PIL.Image.open = patches._image_open


@dataclass(frozen=True)
class Delivered:
    """What was published: the architecture's name, its head, and the SHA-256 of the file."""

    architecture: str
    head: Literal["raw", "end2end"]
    sha256: str


@dataclass(frozen=True)
class Pieces:
    """A training, ready for its first step. `notes` are for people; `frozen` are name parts of what does not learn."""

    learner: Learner
    schedule: Schedule
    frozen: tuple[str, ...]
    notes: tuple[str, ...]


def build(plan: Plan) -> Pieces:
    """Model, EMA, optimizer, scaler and loss by `plan`, as ultralytics' trainer makes them; equal on every rank.

    Raises:
        WeightsError: the base weights are not a detector's. ParamsError: a value that ultralytics does not take.
    """
    params, notes = plan.params, list[str]()
    init_seeds(params.seed, deterministic=True)
    args = _checked(arguments(params, plan.image_size, plan.compute))
    model = _model(plan, notes).to(plan.device, memory_format=plan.compute.torch_format)
    synchronise(model, plan, notes)
    model.nc, model.names, model.args = len(plan.classes), dict(enumerate(plan.classes)), args
    frozen = (*(f"model.{number}." for number in params.freeze), ".dfl")
    _freeze(model, frozen)
    optimizer = _optimizer(plan, model, args)
    if params.optimizer == "auto":
        notes.append("optimizer: auto chose it; train.lr0 and train.momentum have no effect")
    scaler = torch.amp.GradScaler(torch.device(plan.device).type, enabled=plan.compute.precision == "fp16")
    resolved = {"optimizer": args.optimizer, "lr0": args.lr0, "warmup_bias_lr": args.warmup_bias_lr}
    ema = ModelEMA(model)
    ema.ema.model[-1].end2end = _has_end2end(model.model[-1])  # validated is what ships
    learner = Learner(
        model=model,
        ema=ema,
        optimizer=optimizer,
        scaler=scaler,
        criterion=Criterion(model),
        compute=plan.compute,
        description=model.yaml,
        resolved=resolved,
    )
    schedule = Schedule(
        num_epochs=params.epochs,
        num_steps=plan.num_steps,
        lrf=params.lrf,
        momentum=params.momentum,
        warmup_epochs=params.warmup_epochs,
        warmup_bias_lr=args.warmup_bias_lr,
        warmup_momentum=args.warmup_momentum,
    )
    if params.activation_checkpointing:
        recompute_layers(model)
    return Pieces(learner, schedule, frozen, tuple(notes))


class Criterion:
    """Ultralytics' detection loss, a branch at a time, so that parts of a batch can share one normaliser.

    A branch's loss is a sum over its assigned targets, divided by the sum T of their scores, times the number of images. The
    branches of an NMS-free head touch disjoint parameters: one-to-one sees the features detached.
    """

    def __init__(self, model: Any) -> None:
        self._loss = model.init_criterion()
        two = isinstance(self._loss, E2ELoss)
        self._branches = [self._loss.one2many, self._loss.one2one] if two else [self._loss]
        self.names: tuple[str, ...] = tuple(self._branches[-1].loss_names)
        self.num_branches = len(self._branches)
        self._targets: list[Tensor] = []
        for branch in self._branches:
            branch.assigner.register_forward_hook(lambda _module, _inputs, found: self._targets.append(found[2].sum()))

    def __call__(self, preds: Any, batch: Mapping[str, Tensor], whole: bool) -> tuple[Tensor, Tensor]:
        """The loss to go backward from, and the vector (T of each branch, loss items of the last).

        With `whole` it is ultralytics' own, as is. Else nothing is divided: losses of parts add up, and their gradients times
        images / T of all parts are those of the whole.
        """
        self._targets.clear()
        losses, items = list[Tensor](), Tensor()
        for place, (branch, weight) in enumerate(zip(self._branches, self._weights(), strict=True)):
            loss, named = branch.loss(self._of_branch(preds, place), batch)
            items = torch.stack(list(named.values()))
            if not whole:
                normaliser = self._targets[place].clamp(min=1)
                loss, items = loss * (normaliser / len(batch["img"])), items * normaliser
            losses.append(loss if weight is None else loss * weight)
        total = sum(losses[1:], losses[0]).sum()
        return total, torch.cat([torch.stack(self._targets).float(), items.float()])

    def branch_of(self, parameter: str) -> int:
        """Which branch's loss reaches the parameter of this name."""
        return self.num_branches - 1 if "one2one" in parameter else 0

    def next_epoch(self) -> None:
        """An epoch is over: the weights of the branches move on."""
        if self.num_branches == 2:
            self._loss.update()

    @property
    def updates(self) -> int:
        """Epochs after which the weights of the branches have moved on; 0 for a loss of one branch."""
        return int(getattr(self._loss, "updates", 0))

    @updates.setter
    def updates(self, value: int) -> None:
        if self.num_branches == 2 and value != self._loss.updates:
            self._loss.updates = value - 1
            self._loss.update()

    def _weights(self) -> Sequence[float | None]:
        return (self._loss.o2m, self._loss.o2o) if self.num_branches == 2 else (None,)

    def _of_branch(self, preds: Any, place: int) -> Any:
        return preds[("one2many", "one2one")[place]] if self.num_branches == 2 else preds


def head_of(model: Any) -> Literal["raw", "end2end"]:
    """What a detector says: `end2end` where it has an NMS-free head, as that is the one that ships."""
    return "end2end" if _has_end2end(model.model[-1]) else "raw"


def set_training(model: torch.nn.Module, frozen: tuple[str, ...]) -> None:
    """Training mode, but for the BatchNorm of frozen layers."""
    model.train()
    for name, module in model.named_modules():
        if isinstance(module, _BatchNorm) and any(part in name for part in frozen):
            module.eval()


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


def deliver(
    description: Mapping[str, object],
    classes: Sequence[str],
    weights: Mapping[str, Tensor],
    target: Path,
    train_args: Mapping[str, object],
) -> Delivered:
    """Publish `weights` (a state dict) of the architecture `description`, fp16, at `target`: equal weights are equal files.

    The file opens with `ultralytics.YOLO(target)`.
    """
    model: Any = tasks.DetectionModel(dict(description), nc=len(classes), verbose=False)
    model.load_state_dict(dict(weights))
    args = {key: value for key, value in train_args.items() if key in DEFAULT_CFG_KEYS and key not in PLACES}
    model.args, model.names, model.nc = args, dict(enumerate(classes)), len(classes)
    for parameter in model.half().parameters():
        parameter.requires_grad = False
    buffer = io.BytesIO()
    torch.save({"epoch": -1, "model": model, "ema": None, "train_args": args}, buffer)
    write_atomic(target, buffer.getvalue())
    return Delivered(Path(model.yaml["yaml_file"]).name, head_of(model), sha256_bytes(buffer.getvalue()))


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
        detail = " ".join(str(error).replace("❌", " ").split())
        raise WeightsError(f"the download failed ({detail})") from error
    return beside.replace(folder / got.name)


def _load(path: Path) -> Any:
    """The detection model in a .pt, fp32. Raises WeightsError when it cannot be opened, or is no detector."""
    try:
        model, _ = tasks.load_checkpoint(_plain_name(path))
        head, _, _ = type(model.model[-1]).__name__, dict(model.yaml), len(model.names)  # what no detector is without
    except (OSError, RuntimeError, TypeError, ValueError, LookupError, AttributeError, ModuleNotFoundError) as error:
        detail = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise WeightsError(f"{path}: expected weights that ultralytics can open, got {detail}") from error
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


def _checked(given: dict[str, object]) -> Any:
    """Ultralytics' whole table of arguments, if it takes all of ours."""
    try:
        return get_cfg(overrides=given)
    except (TypeError, ValueError, SyntaxError) as error:
        raise ParamsError(f"train: {' '.join(str(error).split())}") from error


def _model(plan: Plan, notes: list[str]) -> Any:
    names = dict(enumerate(plan.classes))
    if plan.base is None:
        assert plan.architecture is not None, "one of the two is given"
        return _named(tasks.DetectionModel(dict(plan.architecture), nc=len(names), verbose=False), names)
    weights = _load(plan.base)
    odd = next((name for name, value in weights.state_dict().items() if not torch.isfinite(value).all()), None)
    if odd is not None:
        raise WeightsError(
            f"{plan.base}: {odd} holds values that are not finite: nothing can be learnt from there; take other weights"
        )
    if len(weights.names) != len(names):
        classes = f"{len(weights.names)} classes, the data {len(names)}"
        notes.append(f"the base weights know {classes}: what tells classes apart is learnt anew")
    model = _named(tasks.DetectionModel(weights.yaml, nc=len(names), verbose=False), names)
    model.load(weights)
    return model


def _named(model: Any, names: Mapping[int, str]) -> Any:
    """Named before weights are loaded, so that rows of known classes find their places by name."""
    model.names = names
    return model


def _freeze(model: torch.nn.Module, frozen: tuple[str, ...]) -> None:
    for name, parameter in model.named_parameters():
        parameter.requires_grad = not any(part in name for part in frozen)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ParamsError("train.freeze: no layer is left that learns; freeze fewer")


def _optimizer(plan: Plan, model: torch.nn.Module, args: Any) -> torch.optim.Optimizer:
    """As ultralytics builds it: parameter groups, `auto`, and MuSGD. What `auto` resolves to is left in `args`."""
    params = plan.params
    optimizer: torch.optim.Optimizer = DetectionTrainer.build_optimizer(
        SimpleNamespace(args=args, data={"nc": len(plan.classes)}),
        model=model,
        name=params.optimizer,
        lr=params.lr0,
        momentum=params.momentum,
        decay=params.weight_decay,
        iterations=plan.num_steps * params.epochs,
    )
    for group in optimizer.param_groups:
        group.setdefault("initial_lr", group["lr"])
    return optimizer
