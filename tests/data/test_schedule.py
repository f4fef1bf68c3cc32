"""Mosaic and mixup by epoch."""

import pytest

from nightowl.data.schedule import mosaic_probability, ranges
from nightowl.params import AugmentParams, TrainParams

TABLE = [
    # what it shows, epochs, closed, first, last, probability by epoch
    ("constant until it is closed", 4, 1, 0.8, None, [0.8, 0.8, 0.8, 0.0]),
    ("a straight line to the last open epoch", 6, 1, 1.0, 0.2, [1.0, 0.8, 0.6, 0.4, 0.2, 0.0]),
    ("a line may rise", 3, 0, 0.0, 1.0, [0.0, 0.5, 1.0]),
    ("one open epoch has the first value", 2, 1, 1.0, 0.2, [1.0, 0.0]),
    ("closed for longer than the training", 2, 5, 1.0, None, [0.0, 0.0]),
]


@pytest.mark.parametrize(
    ("epochs", "closed", "first", "last", "expected"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE]
)
def test_the_probability_of_a_mosaic(epochs: int, closed: int, first: float, last: float | None, expected: list[float]) -> None:
    augment = AugmentParams(mosaic=first, mosaic_last=last)
    train = TrainParams(epochs=epochs, close_mosaic_epochs=closed, augment=augment)
    assert [mosaic_probability(train, epoch) for epoch in range(epochs)] == pytest.approx(expected)


def test_mixup_ends_with_mosaic() -> None:
    train = TrainParams(epochs=3, close_mosaic_epochs=1, augment=AugmentParams(mixup=0.4))
    assert [ranges(train, 5, 64, epoch).mixup for epoch in range(3)] == [0.4, 0.4, 0.0]


def test_every_param_of_augmentation_reaches_the_draw() -> None:
    """Each param changed by itself changes what is drawn from."""
    plain = ranges(TrainParams(), 5, 64, 50)
    for name in AugmentParams.model_fields:
        changed = TrainParams(augment=AugmentParams(**{name: 0.0007}))
        assert ranges(changed, 5, 64, 50) != plain, name
