"""Drawn boxes: where they should be, and readable."""

import itertools

import numpy as np
import pytest

from nightowl.evaluation.draw import DrawnBox, class_colour, draw_boxes


def test_the_image_that_is_drawn_on_stays_as_it_was() -> None:
    image = np.zeros((60, 80, 3), np.uint8)
    drawn = draw_boxes(image, [DrawnBox((10, 20, 50, 40), "open 0.90", (255, 0, 0))])
    assert not image.any()
    assert drawn.shape == image.shape


def test_a_box_has_its_colour_on_its_edge() -> None:
    drawn = draw_boxes(np.zeros((100, 100, 3), np.uint8), [DrawnBox((10, 20, 50, 60), "", (255, 128, 0))])
    assert drawn[40, 10].tolist() == [0, 128, 255]  # BGR
    assert not drawn[40, 30].any()


@pytest.mark.parametrize(
    ("box", "why"),
    [
        ((0, 0, 100, 100), "no room above"),
        ((90, 50, 100, 60), "no room to the right"),
        ((-20, -20, 300, 300), "beyond the image"),
        ((40, 40, 40, 40), "no area"),
    ],
)
def test_a_label_stays_inside_the_image(box: tuple[float, float, float, float], why: str) -> None:
    drawn = draw_boxes(np.zeros((100, 100, 3), np.uint8), [DrawnBox(box, "größe 0.9", (0, 255, 0))])
    plate = (drawn == [0, 255, 0]).all(axis=2).sum()
    assert plate > 200, why


def test_neighbouring_classes_differ_in_colour() -> None:
    colours = [class_colour(i) for i in range(12)]
    assert len(set(colours)) == 12
    assert all(np.abs(np.subtract(a, b)).sum() > 120 for a, b in itertools.pairwise(colours))
