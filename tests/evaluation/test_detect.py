"""The one inference path: batched equals single, order is kept, memory is bounded, broken models are named."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from nightowl.errors import DataError, StageFailed
from nightowl.evaluation.detect import Model, Source, ahead, detect
from nightowl.params import EvaluateParams, TilingParams

LIMITS = EvaluateParams()


def one_box(batch: NDArray[np.float32]) -> NDArray[np.float32]:
    """A model that finds one box over the middle half; its score is the brightness of the middle pixel."""
    size = batch.shape[-1]
    output = np.zeros((len(batch), 5, 1), np.float32)
    output[:, :4, 0] = [size / 2, size / 2, size / 2, size / 2]
    output[:, 4, 0] = batch[:, 0, size // 2, size // 2]
    return output


def grey(value: int, width: int = 64, height: int = 64) -> Source:
    return Source(f"grey-{value}", lambda: np.full((height, width, 3), value, np.uint8))


MODEL = Model(one_box, ("thing",), 32, "raw")


@pytest.mark.parametrize("batch", [1, 3, 16])
def test_every_image_gets_its_own_detections_in_order(batch: int) -> None:
    sources = [grey(value) for value in range(5, 250, 35)]
    detections = detect(MODEL, sources, LIMITS, "test", batch).detections
    assert detections.images == tuple(source.name for source in sources)
    assert detections.score.tolist() == pytest.approx([value / 255 for value in range(5, 250, 35)])


def test_boxes_come_back_in_pixels_of_the_image() -> None:
    found = detect(MODEL, [grey(200, width=128, height=64)], LIMITS, "test").detections
    assert found.boxes_xyxy.tolist() == [[32, 0, 96, 64]]


def test_an_image_with_nothing_found_is_still_in_the_table() -> None:
    found = detect(MODEL, [grey(0), grey(100)], LIMITS, "test").detections
    assert (len(found.images), found.image_index.tolist()) == (2, [1])


def test_a_model_that_says_nan_is_named_with_the_image() -> None:
    def broken(batch: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.where(one_box(batch) == np.float32(100 / 255), np.nan, one_box(batch))

    with pytest.raises(StageFailed, match="grey-100: the model's output holds NaN"):
        detect(MODEL._replace(runner=broken), [grey(50), grey(100)], LIMITS, "test")


def test_an_image_that_cannot_be_read_ends_it() -> None:
    def fails() -> NDArray[np.uint8]:
        raise DataError("x.png: changed")

    with pytest.raises(DataError, match="changed"):
        detect(MODEL, [grey(50), Source("x.png", fails)], LIMITS, "test")


def test_no_more_than_asked_is_prepared_ahead() -> None:
    started, taken, lock = 0, 0, threading.Lock()

    def work(item: int) -> int:
        nonlocal started
        with lock:
            started += 1
            assert started - taken <= 4 + 1
        return item

    with ThreadPoolExecutor(2) as pool:
        for expected, item in enumerate(ahead(pool, work, range(50), depth=4)):
            assert item == expected
            with lock:
                taken += 1
    assert taken == 50


def bright_spots(batch: NDArray[np.float32]) -> NDArray[np.float32]:
    """A model that finds one box, the bounds of what is brighter than grey; score: the part of its input that is."""
    output = np.zeros((len(batch), 5, 1), np.float32)
    for view, row in zip(batch[:, 0] > 0.6, output[:, :, 0], strict=True):
        ys, xs = np.nonzero(view)
        if len(xs):
            x1, x2, y1, y2 = xs.min(), xs.max() + 1, ys.min(), ys.max() + 1
            row[:] = (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1, 0.5 + view.mean() / 2
    return output


@pytest.mark.parametrize("batch", [1, 4, 16])
def test_tiles_of_a_large_image_give_boxes_in_its_pixels_once_each(batch: int) -> None:
    scan = np.zeros((200, 600, 3), np.uint8)
    objects = [(20, 20, 44, 36), (90, 100, 114, 130), (560, 160, 600, 200)]  # the second lies across two tiles
    for x1, y1, x2, y2 in objects:
        scan[y1:y2, x1:x2] = 255
    tiled = Model(bright_spots, ("thing",), 96, "raw", TilingParams(size_px=96, overlap=0.4))
    sources = [grey(0), Source("scan", lambda: scan), grey(0, 600, 200)]
    found = detect(tiled, sources, LIMITS, "test", batch).detections
    assert set(found.image_index.tolist()) == {1}
    assert sorted(found.boxes_xyxy.tolist()) == sorted([list(map(float, box)) for box in objects])


def test_a_tile_as_large_as_the_image_changes_nothing() -> None:
    tiled = MODEL._replace(tiling=TilingParams(size_px=64))
    whole, tiles = (detect(model, [grey(200), grey(90)], LIMITS, "test").detections for model in (MODEL, tiled))
    assert whole.boxes_xyxy.tolist() == tiles.boxes_xyxy.tolist()
    assert whole.score.tolist() == tiles.score.tolist()
