"""What the network sees equals what ultralytics would show it, and boxes find their way back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ultralytics.data.augment import LetterBox

from nightowl.evaluation.preprocess import letterbox, plan_letterbox

SIDES = st.integers(1, 5000)


@pytest.mark.parametrize(
    ("width", "height", "size", "why"),
    [
        (96, 96, 96, "nothing to do"),
        (640, 480, 96, "wide, shrunk"),
        (481, 640, 96, "tall, an odd side"),
        (50, 33, 96, "scaled up, the spare pixel goes right or below"),
        (97, 95, 96, "a pixel off"),
        (3000, 1, 96, "so thin that a side would vanish"),
        (192, 96, 64, "half, exactly"),
    ],
)
def test_the_pixels_equal_those_of_ultralytics(width: int, height: int, size: int, why: str) -> None:
    image = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    ours, _ = letterbox(image, size)
    square = LetterBox((size, size), auto=False, scaleup=True, center=True)(image=image)
    theirs = square[..., ::-1].transpose(2, 0, 1).astype(np.float32) / 255
    assert ours.dtype == np.float32
    assert np.array_equal(ours, theirs), why


@given(SIDES, SIDES, st.sampled_from([32, 96, 640]))
def test_the_whole_image_comes_back_as_the_whole_image(width: int, height: int, size: int) -> None:
    plan, (inner_width, inner_height) = plan_letterbox(width, height, size)
    inside = np.array([[plan.pad_x, plan.pad_y, plan.pad_x + inner_width, plan.pad_y + inner_height]], np.float32)
    assert np.allclose(plan.to_image(inside), [[0, 0, width, height]], rtol=1e-5)
    assert 0 <= plan.pad_x <= size - inner_width
    assert 0 <= plan.pad_y <= size - inner_height


def test_a_box_in_the_padding_is_clipped_to_the_image() -> None:
    plan, _ = plan_letterbox(200, 100, 100)
    boxes = plan.to_image(np.array([[-5, 0, 120, 100]], np.float32))
    assert boxes.tolist() == [[0, 0, 200, 100]]
