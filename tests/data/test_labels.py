"""The labels of a set as arrays."""

from nightowl.data.labels import labels_of
from nightowl.data.manifest import Box, Image


def an_image(*boxes: Box) -> Image:
    return Image("a.jpg", "0" * 64, 1, 200, 100, "train", boxes)


def test_boxes_are_fractions_of_their_image_and_crowds_are_left_out() -> None:
    labels = labels_of(
        [an_image(), an_image(Box(2, 20, 10, 100, 100), Box(0, 0, 0, 9, 9, True)), an_image(Box(1, 0, 0, 200, 50))]
    )
    assert len(labels) == 3 and labels.most() == 1
    boxes, class_ids, counts = labels.of_all([1, 0, 2, 1])
    assert boxes.tolist() == [[0.1, 0.1, 0.5, 1.0], [0, 0, 1, 0.5], [0.1, 0.1, 0.5, 1.0]]
    assert class_ids.tolist() == [2, 1, 2]
    assert counts == [1, 0, 1, 1]


def test_a_set_without_any_box_has_empty_arrays() -> None:
    labels = labels_of([an_image(), an_image()])
    assert labels.most() == 0 and labels.of_all([0, 1])[0].shape == (0, 4)
