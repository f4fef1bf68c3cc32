import base64
import io

import numpy as np
import PIL.Image
import pytest
from numpy.typing import NDArray

from nightowl.data.manifest import Box, Image, Manifest
from nightowl.errors import DataError
from nightowl.evaluation.detections import Detections, gather
from nightowl.evaluation.postprocess import Found
from nightowl.report.content import Thumbnail
from nightowl.report.gallery import (
    MAX_BOXES,
    MAX_JPEG_BYTES,
    MAX_SIDE_PX,
    NUM_BEST,
    NUM_WORST,
    build_gallery,
    choose,
    encode_jpeg,
)

CLASSES = ("open", "short")


def image(path: str, *boxes: Box) -> Image:
    return Image(path, "0" * 64, 1, 200, 100, "test", boxes)


def found(*rows: tuple[float, float, float, float, float, int]) -> Found:
    table = np.array(rows, np.float64).reshape(-1, 6)
    return Found(table[:, :4].astype(np.float32), table[:, 4].astype(np.float32), table[:, 5].astype(np.int32))


def grey(image: Image) -> NDArray[np.uint8]:
    return np.full((image.height, image.width, 3), 128, np.uint8)


def kinds(thumb: Thumbnail) -> list[str]:
    return [box.kind for box in thumb.boxes]


DATASET = Manifest(
    CLASSES,
    (
        image("a.png", Box(0, 10, 10, 40, 40), Box(1, 60, 10, 90, 40)),
        image("b.png", Box(0, 10, 10, 40, 40)),
        image("c.png"),
        image("d.png", Box(0, 0, 0, 100, 100, ignore=True)),
    ),
    "",
)


def detections(*each: Found) -> Detections:
    return gather(CLASSES, ["a.png", "b.png", "c.png", "d.png"], each)


LOOKED = detections(
    found((11, 11, 40, 40, 0.9, 0), (60, 10, 90, 40, 0.8, 0)),  # right; then the right place, the wrong class
    found((10, 10, 40, 40, 0.9, 0), (10, 10, 40, 40, 0.2, 1)),  # right; the other lies below the threshold
    found((10, 10, 40, 40, 0.5, 0)),  # nothing is there
    found((10, 10, 40, 40, 0.9, 0)),  # in a crowd
)


def test_misses_and_false_alarms_are_counted_and_the_worst_come_first() -> None:
    gallery = build_gallery(DATASET, LOOKED, 0.5, grey)
    assert [(t.path, t.num_missed, t.num_false) for t in gallery.worst] == [("a.png", 1, 1), ("c.png", 0, 1)]
    assert [t.path for t in gallery.best] == ["b.png", "d.png"]
    assert (gallery.num_images, gallery.num_without_error) == (4, 2)


def test_each_box_says_what_it_is_and_errors_are_drawn_on_top() -> None:
    gallery = build_gallery(DATASET, LOOKED, 0.5, grey)
    assert kinds(gallery.worst[0]) == ["found", "right", "missed", "false"]
    assert kinds(gallery.best[1]) == ["crowd", "in_crowd"]


def test_boxes_shrink_with_their_image() -> None:
    wide = Manifest(CLASSES, (Image("w.png", "0" * 64, 1, 960, 480, "test", (Box(0, 96, 48, 960, 480),)),), "")
    (thumb,) = build_gallery(wide, gather(CLASSES, ["w.png"], [found()]), 0.5, grey).worst
    assert (thumb.width, thumb.height) == (MAX_SIDE_PX, MAX_SIDE_PX // 2)
    assert (thumb.boxes[0].x1, thumb.boxes[0].y1, thumb.boxes[0].x2, thumb.boxes[0].y2) == (48, 24, 480, 240)


def test_an_image_that_cannot_be_loaded_is_shown_by_its_boxes_and_says_why() -> None:
    def gone(image: Image) -> NDArray[np.uint8]:
        raise DataError(f"{image.path}: image changed since it was pinned")

    thumb = build_gallery(DATASET, LOOKED, 0.5, gone).worst[0]
    assert thumb.jpeg is None and thumb.note == "a.png: image changed since it was pinned"
    assert len(thumb.boxes) == 4


def test_boxes_that_are_not_drawn_are_counted_and_errors_are_the_last_to_go() -> None:
    many = [(float(x % 180), float(x % 80), x % 180 + 9.0, x % 80 + 9.0, 0.9, 0) for x in range(MAX_BOXES + 20)]
    looked = detections(found(*many), found(), found(), found())
    (thumb,) = (t for t in build_gallery(DATASET, looked, 0.5, grey).worst if t.path == "a.png")
    assert len(thumb.boxes) == MAX_BOXES
    assert thumb.num_boxes_left_out > 0
    assert kinds(thumb).count("false") == MAX_BOXES


def test_detections_of_another_test_split_are_refused() -> None:
    with pytest.raises(DataError, match="of other images or classes than the test split"):
        build_gallery(DATASET, gather(CLASSES, ["a.png"], [found()]), 0.5, grey)


def test_the_number_of_images_is_bounded() -> None:
    errors = np.concatenate([np.arange(50), np.zeros(50, np.int64)])
    worst, best = choose(errors, np.ones(100, np.int64))
    assert worst == list(range(49, 49 - NUM_WORST, -1))
    assert len(best) == NUM_BEST and all(errors[i] == 0 for i in best)


def test_a_jpeg_of_pure_noise_stays_small() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (900, 1200, 3), dtype=np.uint8)
    text, width, height = encode_jpeg(noise)
    content = base64.b64decode(text)
    assert (width, height) == (480, 360) == PIL.Image.open(io.BytesIO(content)).size
    assert len(content) <= 1.2 * MAX_JPEG_BYTES


def test_a_small_image_is_not_enlarged() -> None:
    assert encode_jpeg(np.zeros((20, 30, 3), np.uint8))[1:] == (30, 20)
