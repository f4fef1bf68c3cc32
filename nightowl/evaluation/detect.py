"""Images through a runner to detections: decode and letterbox in a few threads ahead, infer in batches, back to pixels.

The one inference path. An image is one view, or with tiling several, whose detections are merged. Its time counts the runner
alone, so that formats can be compared.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nightowl.data.manifest import Window
from nightowl.data.tiling import windows_of
from nightowl.errors import StageFailed
from nightowl.evaluation.detections import Detections, gather
from nightowl.evaluation.merge import merge_tiles
from nightowl.evaluation.model_file import ModelRecord
from nightowl.evaluation.postprocess import Found, Head, decode
from nightowl.evaluation.preprocess import Letterbox, letterbox
from nightowl.evaluation.runners import Runner
from nightowl.params import EvaluateParams, TilingParams
from nightowl.progress import track

BATCH, LOADERS, BATCHES_AHEAD = 16, 2, 2
T = TypeVar("T")
R = TypeVar("R")


class Source(NamedTuple):
    """An image to look at: its name, and how to get its pixels (H, W, 3) BGR as seen."""

    name: str
    load: Callable[[], NDArray[np.uint8]]


class Detected(NamedTuple):
    detections: Detections
    seconds_per_image: float


class Model(NamedTuple):
    """A runner and what has to be known to use it. With `tiling` it looks at an image in tiles."""

    runner: Runner
    classes: tuple[str, ...]
    image_size: int
    head: Head
    tiling: TilingParams | None = None


class _View(NamedTuple):
    """The network's input (3, S, S), how it was laid there, where in the image it lies, and whether it is the image's last."""

    tensor: NDArray[np.float32]
    plan: Letterbox
    window: Window
    is_last: bool


def model_of(record: ModelRecord, runner: Runner) -> Model:
    """`runner`, to be used as its record says."""
    return Model(runner, record.classes, record.image_size, record.head, record.tiling)


def detect(model: Model, sources: Sequence[Source], limits: EvaluateParams, what: str, batch: int = BATCH) -> Detected:
    """Detections on every source, in order; `what` names the work on the progress bar.

    Raises:
        StageFailed: when the model says NaN or infinity; the image is named. What a source raises passes through.
    """
    found: list[Found] = []
    tiles: list[Found] = []
    seconds = 0.0
    with ThreadPoolExecutor(LOADERS, thread_name_prefix="decode") as pool:
        for views in _chunks(_views(pool, model, sources, what, batch * BATCHES_AHEAD), batch):
            started = time.perf_counter()
            outputs = model.runner(np.stack([view.tensor for view in views]))
            seconds += time.perf_counter() - started
            for view, output in zip(views, outputs, strict=True):
                tiles.append(finish(sources[len(found)].name, output, view.plan, view.window, model, limits))
                if view.is_last:
                    found.append(merged(tiles, model, limits))
                    tiles = []
    names = [source.name for source in sources]
    return Detected(gather(model.classes, names, found), seconds / max(len(sources), 1))


def views_of(image_bgr: NDArray[np.uint8], model: Model) -> list[tuple[NDArray[np.float32], Letterbox, Window]]:
    """All that the model has to see of one image (H, W, 3), for whoever looks at one alone."""
    height, width = image_bgr.shape[:2]
    windows = windows_of(width, height, model.tiling)
    return [(*letterbox(_cut(image_bgr, window), model.image_size), window) for window in windows]


def merged(tiles: Sequence[Found], model: Model, limits: EvaluateParams) -> Found:
    """Detections of one image from those of its views."""
    return tiles[0] if model.tiling is None else merge_tiles(tiles, model.tiling, limits.max_detections)


def _views(pool: ThreadPoolExecutor, model: Model, sources: Sequence[Source], what: str, depth: int) -> Iterator[_View]:
    """The views of all sources in order, `depth` of them ready ahead; of large images only a few are held at a time."""

    def parts() -> Iterator[tuple[NDArray[np.uint8], Window, bool]]:
        images = ahead(pool, lambda source: source.load(), sources, LOADERS)
        for image in track(images, what, total=len(sources)):
            windows = windows_of(image.shape[1], image.shape[0], model.tiling)
            yield from ((image, window, window is windows[-1]) for window in windows)

    def view(part: tuple[NDArray[np.uint8], Window, bool]) -> _View:
        image, window, is_last = part
        return _View(*letterbox(_cut(image, window), model.image_size), window, is_last)

    return ahead(pool, view, parts(), depth)


def _cut(image_bgr: NDArray[np.uint8], window: Window) -> NDArray[np.uint8]:
    return image_bgr[window.y : window.y + window.height, window.x : window.x + window.width]


def finish(
    name: str, output: NDArray[np.float32], plan: Letterbox, window: Window, model: Model, limits: EvaluateParams
) -> Found:
    """Detections on one view, in pixels of its image, from the head's output for it. Raises StageFailed on NaN or infinity."""
    if not np.isfinite(output).all():
        raise StageFailed(f"{name}: the model's output holds NaN or infinity; its weights are broken, train again")
    found = decode(
        output,
        model.head,
        confidence=limits.confidence_floor,
        iou=limits.nms_iou,
        max_detections=limits.max_detections,
    )
    corner = np.array([window.x, window.y] * 2, np.float32)
    return found._replace(boxes_xyxy=plan.to_image(found.boxes_xyxy) + corner)


def ahead(pool: ThreadPoolExecutor, work: Callable[[T], R], items: Iterable[T], depth: int) -> Iterator[R]:
    """`work` on every item, in order, at most `depth` of them under way: a long list never fills the memory."""
    remaining = iter(items)
    waiting: deque[Future[R]] = deque(pool.submit(work, item) for item in islice(remaining, depth))
    try:
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(work, item) for item in islice(remaining, 1))
            yield result
    finally:
        for future in waiting:
            future.cancel()


def _chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk
