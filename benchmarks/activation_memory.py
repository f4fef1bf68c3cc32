"""How much less memory activation checkpointing takes: the peak of what one step's forward and backward hold.

    python -m benchmarks.activation_memory [MODEL [SIDE [IMAGES]]]

Counted by what operations make and let go of, on the CPU: a count, which no other work on the machine disturbs. Weights are not
in it, gradients and the loss are.
"""

import sys

import torch

from nightowl.data.batch import Batch
from nightowl.params import TrainParams
from nightowl.training.architecture import architecture
from nightowl.training.compute import Compute
from nightowl.training.images import to_targets
from nightowl.training.plan import Plan
from nightowl.training.yolo import build
from tests.training.live_bytes import LiveBytes
from tests.training.standins import a_batch

CLASSES = ("a", "b")


def peak_bytes(model: str, side: int, num_images: int, recompute: bool) -> int:
    params = TrainParams(base=model, global_batch=num_images, optimizer="AdamW", activation_checkpointing=recompute)
    plan = Plan(
        params=params,
        image_size=side,
        classes=CLASSES,
        num_images=num_images,
        num_steps=1,
        architecture=architecture(model),
        base=None,
        device="cpu",
        compute=Compute(precision="fp32", memory_format="contiguous"),
        micro_batch=num_images,
    )
    learner = build(plan).learner
    learner.model.train()
    batch: Batch = a_batch(list(range(num_images)))
    targets = to_targets(batch, torch.device("cpu"), side, torch.contiguous_format)  # scaled to `side`
    with LiveBytes() as held:
        loss, _ = learner.criterion(learner.model(targets["img"]), targets, True)
        loss.backward()
    return int(held.peak)


def main() -> None:
    model, side, num_images = (*sys.argv[1:], *("yolo11m.yaml", "192", "4")[len(sys.argv) - 1 :])
    without, checkpointed = (peak_bytes(model, int(side), int(num_images), recompute) for recompute in (False, True))
    print(f"{model}, {num_images} images of {side} px: {without / 1e6:.0f} MB without, {checkpointed / 1e6:.0f} MB with")
    print(f"{1 - checkpointed / without:.0%} less")


if __name__ == "__main__":
    main()
