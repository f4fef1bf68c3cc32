"""A batch of the loader as the tensors that ultralytics' model and loss take, on the device."""

import hashlib
import math
import random

import torch
from torch import Tensor

from nightowl.data.batch import Batch
from nightowl.training.device_augment import apply_hsv_gains
from nightowl.training.plan import Plan

STRIDE = 32


def to_targets(batch: Batch, device: torch.device, side: int, memory_format: torch.memory_format) -> dict[str, Tensor]:
    """Images (N, 3, side, side) in 0..1 as `img`, boxes as `bboxes` (cxcywh, fractions), `cls` (M, 1), `batch_idx` (M,)."""
    levels = torch.from_numpy(batch.images).to(device, non_blocking=device.type == "cuda")
    gains = batch.hsv_gains
    images = levels.float() / 255 if gains is None else apply_hsv_gains(levels, torch.from_numpy(gains))
    if images.shape[-1] != side:
        images = torch.nn.functional.interpolate(images, size=(side, side), mode="bilinear", align_corners=False)
    return {
        "img": images.contiguous(memory_format=memory_format),
        "bboxes": torch.from_numpy(batch.boxes_cxcywh_norm).to(device),
        "cls": torch.from_numpy(batch.class_ids).to(device, torch.float32).view(-1, 1),
        "batch_idx": torch.from_numpy(batch.owners).to(device, torch.float32),
    }


def image_side(plan: Plan, epoch: int, step: int) -> int:
    """The image side of a step, pixels: with multi-scale drawn from (seed, epoch, step), by ultralytics' formula."""
    size, spread = plan.image_size, plan.params.multi_scale
    if not spread:
        return size
    mixed = hashlib.blake2b(repr(("side", plan.params.seed, epoch, step)).encode(), digest_size=8).digest()
    low, high = max(STRIDE, int(size * (1.0 - spread))), int(size * (1.0 + spread) + STRIDE)
    return max(math.floor(random.Random(mixed).randrange(low, high) / STRIDE) * STRIDE, STRIDE)
