"""One training, planned: from our params to ultralytics' arguments, in one table."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from nightowl.params import TrainParams
from nightowl.training.view import View

# Arguments that say where a training ran; weights are to depend on what was trained only.
PLACES = frozenset({"cache", "cfg", "data", "device", "model", "name", "project", "resume", "save_dir", "workers"})


@dataclass(frozen=True)
class Plan:
    """One training. `base` is a file of weights, or else `architecture` is trained from random ones; `resume` is a last.pt."""

    params: TrainParams
    image_size: int
    view: View
    architecture: Mapping[str, object] | None
    base: Path | None
    work: Path
    resume: Path | None
    device: str
    num_workers: int
    keep_in_memory: bool


def arguments(plan: Plan) -> dict[str, object]:
    """The plan in ultralytics' words; every argument that bears on the result is here or has its default there."""
    params, augment = plan.params, plan.params.augment
    return {
        "task": "detect",
        "model": params.base,
        "data": str(plan.view.folder / "data.yaml"),
        "save_dir": str(plan.work),
        "imgsz": plan.image_size,
        "epochs": params.epochs,
        "batch": params.global_batch,
        "nbs": params.global_batch,  # one optimizer step a batch, weight decay as given
        "optimizer": params.optimizer,
        "lr0": params.lr0,
        "lrf": params.lrf,
        "momentum": params.momentum,
        "weight_decay": params.weight_decay,
        "warmup_epochs": params.warmup_epochs,
        "close_mosaic": params.close_mosaic_epochs,
        "patience": params.patience_epochs,
        "seed": params.seed,
        "deterministic": True,
        "mosaic": augment.mosaic,
        "mixup": augment.mixup,
        "hsv_h": augment.hsv_h,
        "hsv_s": augment.hsv_s,
        "hsv_v": augment.hsv_v,
        "degrees": augment.degrees,
        "translate": augment.translate,
        "scale": augment.scale,
        "shear": augment.shear,
        "perspective": augment.perspective,
        "flipud": augment.flip_up_down,
        "fliplr": augment.flip_left_right,
        "nms": False,  # where there is an NMS-free head, it is the one that is validated, as it is the one that ships
        "rect": False,
        "device": plan.device,
        "workers": plan.num_workers,
        "cache": "ram" if plan.keep_in_memory else False,
        "amp": _precision(plan.device),
        "plots": False,
        "verbose": False,
    }


def _precision(device: str) -> str | bool:
    """bf16 where the device computes in it, else fp32: upstream's fp16 first tests itself on weights that it downloads."""
    return "bf16" if device != "cpu" and torch.cuda.is_bf16_supported(including_emulation=False) else False
