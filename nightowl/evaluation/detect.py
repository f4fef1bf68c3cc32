"""Images through a runner to detections: decode and letterbox in a few threads ahead, infer in batches, back to pixels.

The one inference path. Its time counts the runner alone, so that formats can be compared.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nightowl.errors import StageFailed
from nightowl.evaluation.detections import Detections, gather
from nightowl.evaluation.postprocess import Found, Head, decode
from nightowl.evaluation.preprocess import Letterbox, letterbox
from nightowl.evaluation.runners import Runner
from nightowl.params import EvaluateParams
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
    """A runner and what has to be known to use it."""

    runner: Runner
    classes: tuple[str, ...]
    image_size: int
    head: Head


def detect(model: Model, sources: Sequence[Source], limits: EvaluateParams, what: str, batch: int = BATCH) -> Detected:
    """Detections on every source, in order; `what` names the work on the progress bar.

    Raises:
        StageFailed: when the model says NaN or infinity; the image is named. What a source raises passes through.
    """

    def prepare(source: Source) -> tuple[NDArray[np.float32], Letterbox]:
        return letterbox(source.load(), model.image_size)

    found: list[Found] = []
    seconds = 0.0
    with ThreadPoolExecutor(LOADERS, thread_name_prefix="decode") as pool:
        inputs = track(ahead(pool, prepare, sources, batch * BATCHES_AHEAD), what, total=len(sources))
        for chunk in _chunks(inputs, batch):
            tensors, plans = zip(*chunk, strict=True)
            started = time.perf_counter()
            outputs = model.runner(np.stack(tensors))
            seconds += time.perf_counter() - started
            names = [source.name for source in sources[len(found) : len(found) + len(chunk)]]
            found += [finish(*each, model, limits) for each in zip(names, outputs, plans, strict=True)]
    names = [source.name for source in sources]
    return Detected(gather(model.classes, names, found), seconds / max(len(sources), 1))


def finish(name: str, output: NDArray[np.float32], plan: Letterbox, model: Model, limits: EvaluateParams) -> Found:
    """Detections of one image in its own pixels, from the head's output for it. Raises StageFailed on NaN or infinity."""
    if not np.isfinite(output).all():
        raise StageFailed(f"{name}: the model's output holds NaN or infinity; its weights are broken, train again")
    found = decode(
        output,
        model.head,
        confidence=limits.confidence_floor,
        iou=limits.nms_iou,
        max_detections=limits.max_detections,
    )
    return found._replace(boxes_xyxy=plan.to_image(found.boxes_xyxy))


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
