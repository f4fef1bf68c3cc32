"""HSV gains on the device against the same on the CPU."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nightowl.data.augment.colour import Gains, apply_gains
from nightowl.training.device_augment import apply_hsv_gains
from nightowl.training.group import Alone
from nightowl.training.step import Stepper, Taken
from nightowl.training.stopping import AnyStop
from nightowl.training.yolo import build
from tests.data.training_sets import a_case
from tests.training.standins import a_plan

GAINS: list[Gains] = [
    (0.0, 0.0, 0.0),
    (0.012, 0.6, 0.35),  # saturation and value both reach their ends
    (-0.015, 0.6, -0.2),
    (0.006, -0.5, 0.4),
    (-0.002, -0.7, -0.4),
    (0.4, 0.0, 0.0),
    (-0.5, 0.0, 0.0),
    (0.0, -1.0, 0.0),  # grey
    (0.0, 0.0, -1.0),  # black
]


@pytest.mark.parametrize("gains", GAINS)
def test_the_device_gives_what_the_cpu_gives(gains: Gains) -> None:
    planes = np.random.default_rng(0).integers(0, 256, (3, 200, 64), dtype=np.uint8)
    planes[:, :3] = np.array([0, 114, 255], np.uint8)[:, None]  # grey has no hue, black no saturation
    found = apply_hsv_gains(torch.from_numpy(planes.copy())[None], torch.tensor([gains])).numpy()[0] * 255
    apply_gains(planes, gains)
    off = np.abs(found - planes)
    assert off.max() <= 1 + 1e-3
    assert off.mean() < 0.01


def test_each_image_of_a_batch_gets_its_own_gains() -> None:
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (2, 3, 16, 16), dtype=np.uint8))
    gains = torch.tensor([(0.01, 0.3, 0.2), (-0.01, -0.3, -0.2)])
    together = apply_hsv_gains(images, gains)
    assert together.dtype == torch.float32 and together.min() >= 0 and together.max() <= 1
    for number in range(2):
        assert torch.equal(together[number], apply_hsv_gains(images[number, None], gains[number, None])[0])


def test_a_loader_that_leaves_colour_to_the_device_gives_the_same_batches() -> None:
    case = a_case()
    now, later = case.loader().steps(2), case.loader(colour_later=True).steps(2)
    for done, left in zip(now, later, strict=True):
        assert done.hsv_gains is None and left.hsv_gains is not None
        applied = apply_hsv_gains(torch.from_numpy(left.images), torch.from_numpy(left.hsv_gains)).numpy() * 255
        assert np.abs(applied - done.images).max() <= 1 + 1e-3
        assert np.array_equal(done.boxes_cxcywh_norm, left.boxes_cxcywh_norm)
        assert left.part(1, 2).hsv_gains is not None and left.part(1, 2).hsv_gains.shape == (min(len(left), 2) - 1, 3)


def test_an_empty_share_stays_empty() -> None:
    assert apply_hsv_gains(torch.empty(0, 3, 8, 8, dtype=torch.uint8), torch.empty(0, 3)).shape == (0, 3, 8, 8)


def test_a_step_whose_colours_are_left_to_the_device_has_the_losses_of_one_whose_are_not() -> None:
    case, losses = a_case(hsv_h=0.015, hsv_s=0.7, hsv_v=0.4), []
    for later, applied in ((False, True), (True, True), (True, False)):
        batch = next(case.loader(colour_later=later).steps(0))
        stepper = Stepper(plan := a_plan(), build(plan).learner, Alone(), AnyStop(()), lambda: False, lambda *_: None)
        known = batch.class_ids < len(plan.classes)
        kept = {key: getattr(batch, key)[known] for key in ("boxes_cxcywh_norm", "class_ids", "owners")}
        batch = replace(batch, **kept, hsv_gains=batch.hsv_gains if applied else None)
        taken = stepper.take(batch, 0, 0, 2)  # in two parts: gains are divided like images
        assert isinstance(taken, Taken) and taken.losses is not None
        losses.append(taken.losses)
    by_loader, by_device, by_nobody = losses
    for name, value in by_loader.items():
        off, off_without = abs(by_device[name] - value), abs(by_nobody[name] - value)
        assert off < 0.02 * value and off < off_without, (name, losses)
