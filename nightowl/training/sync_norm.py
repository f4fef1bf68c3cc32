"""SyncBatchNorm: BatchNorm over a step's images on all ranks instead of each rank's own.

In every layer all ranks wait for one another. So each must have a share of every step and go forward through it once: a rank
whose memory runs out cannot take its share in parts.
"""

import torch
from torch.nn import SyncBatchNorm

from nightowl.errors import ParamsError
from nightowl.training.plan import Plan


def synchronise(model: torch.nn.Module, plan: Plan, notes: list[str]) -> None:
    """Put SyncBatchNorm in BatchNorm's place where params ask for it; the parameters stay the same objects.

    Raises:
        ParamsError: on the CPU, which has none, or where a rank would have no image in the last step of an epoch.
    """
    if not plan.params.sync_batch_norm:
        return
    if not plan.device.startswith("cuda"):
        raise ParamsError(
            f"train.sync_batch_norm: expected CUDA devices, this training is on: {plan.device}; set it to false, or device"
        )
    if not plan.is_synchronised:
        notes.append("train.sync_batch_norm has no effect on one device")
        return
    last = plan.num_images - (plan.num_steps - 1) * plan.params.global_batch
    if last < plan.world_size:
        raise ParamsError(
            f"train.sync_batch_norm: expected an image for each of {plan.world_size} ranks in every step, found {last} in the "
            "last step of an epoch; change train.global_batch"
        )
    SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
