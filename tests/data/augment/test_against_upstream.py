"""Our augmentation against ultralytics' own: the same for the same draw, and drawn from the same distributions."""

import numpy as np
import pytest
from numpy.typing import NDArray

from nightowl.data.augment.draw import Draw, draw
from nightowl.data.augment.sample import Augmenter
from tests.data.augment.upstream import by_upstream
from tests.data.training_sets import Case, a_case

NUM_IMAGES = 12
TABLE = [
    # name, draws, params; together more than a thousand draws
    ("as it comes", 400, {}),
    ("without mosaic", 150, {"mosaic": 0.0}),
    ("now and then", 150, {"mosaic": 0.5, "flip_up_down": 0.5}),
    ("far", 150, {"scale": 0.9, "translate": 0.5}),
    ("mixup", 100, {"mosaic": 0.7, "mixup": 0.7}),
    ("rotated", 100, {"mosaic": 0.7, "degrees": 45.0}),
    ("sheared", 50, {"mosaic": 0.7, "shear": 10.0}),
    ("in perspective", 50, {"mosaic": 0.7, "degrees": 10.0, "shear": 5.0, "perspective": 0.0005}),
]


def our_draw(case: Case, sample: int, epoch: int = 0) -> Draw:
    return draw(case.ranges(), case.train.seed, epoch, sample)


def by_us(case: Case, drawn: Draw) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.int64]]:
    target = np.empty((3, case.size, case.size), np.uint8)
    centres, ids = Augmenter(case.images, case.labels, case.size).augment(drawn, target)
    boxes = np.concatenate((centres[:, :2] - centres[:, 2:] / 2, centres[:, :2] + centres[:, 2:] / 2), axis=1)
    return target, boxes * case.size, ids


@pytest.mark.parametrize(("number", "params"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_same_draw_gives_upstreams_boxes_within_half_a_pixel(number: int, params: dict[str, float]) -> None:
    case = a_case(NUM_IMAGES, size=160, **params)
    farthest, num_boxes = 0.0, 0
    for count in range(number):
        sample = count % NUM_IMAGES
        drawn = our_draw(case, sample, count)
        _, theirs, their_ids = by_upstream(case, sample, drawn)
        _, ours, our_ids = by_us(case, drawn)
        assert our_ids.tolist() == their_ids.tolist()
        farthest = max(farthest, float(np.abs(ours - theirs).max(initial=0)))
        num_boxes += len(ours)
    assert num_boxes > number
    assert farthest <= 0.5
    assert farthest < 1e-3 or not (params.keys() & {"degrees", "shear"})  # nothing is rounded there


@pytest.mark.parametrize("params", [row[2] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_same_draw_gives_upstreams_image_up_to_interpolation(params: dict[str, float]) -> None:
    """Blurred images, so that what is left is not the half pixel by which the two may differ in place."""
    case = a_case(NUM_IMAGES, size=160, **params)
    differences = []
    for sample in range(NUM_IMAGES):
        drawn = our_draw(case, sample)
        theirs, ours = by_upstream(case, sample, drawn)[0], by_us(case, drawn)[0]
        differences.append(np.abs(theirs.astype(int) - ours).mean())
    assert max(differences) < 4
    assert np.mean(differences) < 2
