"""One training, planned: from our params to ultralytics' arguments, in one table."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nightowl.params import TrainParams
from nightowl.training.compute import Compute

# Arguments that say where a training ran; weights are to depend on what was trained only.
PLACES = frozenset({"cache", "cfg", "data", "device", "model", "name", "project", "resume", "save_dir", "workers"})
_AMP = {"fp32": False, "bf16": "bf16", "fp16": True}


@dataclass(frozen=True)
class Plan:
    """One training. `base` is a file of weights, or else `architecture` is trained from random ones.

    `num_steps`: optimizer steps an epoch. `micro_batch`: images a forward pass on one rank to begin with, at most.
    `world_size`: number of ranks.
    """

    params: TrainParams
    image_size: int
    classes: tuple[str, ...]
    num_images: int
    num_steps: int
    architecture: Mapping[str, object] | None
    base: Path | None
    device: str
    compute: Compute
    micro_batch: int
    world_size: int = 1
    val_batch: int = 16

    @property
    def is_synchronised(self) -> bool:
        """Whether BatchNorm is computed over all ranks' images."""
        return self.params.sync_batch_norm and self.world_size > 1


def arguments(params: TrainParams, image_size: int, compute: Compute) -> dict[str, object]:
    """A training in ultralytics' words; every argument that bears on the result is here or has its default there."""
    augment = params.augment
    return {
        "task": "detect",
        "imgsz": image_size,
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
        "multi_scale": params.multi_scale,
        "freeze": list(params.freeze),
        "compile": params.compile,
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
        "amp": _AMP[compute.precision],
        "plots": False,
        "verbose": False,
    }
