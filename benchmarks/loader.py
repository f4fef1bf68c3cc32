"""Training images a second of one core, ours against ultralytics' best cached loaders: `python -m benchmarks.loader`.

Synthetic images of 640x480 to 1280x720 as JPEG, mosaic on, ultralytics' default augmentation, batches of 16, no workers: the
seconds are those of the process's own processor time, so that a shared machine does not count. All sides take turns in one
process. `--profile` prints where our time goes, `--workers` what worker processes and threads give on the wall.
"""

import argparse
import contextlib
import cProfile
import io
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from nightowl.data.augment.colour import apply_gains
from nightowl.data.cache.build import Means, build_cache
from nightowl.data.cache.opening import recipe
from nightowl.data.cache.packed import PackedImages
from nightowl.data.cache.reading import open_packed
from nightowl.data.cache.recipe import Origin
from nightowl.data.labels import Labels, labels_of
from nightowl.data.loader import TrainingLoader
from nightowl.data.maker import Maker, Share, TrainingSet
from nightowl.data.manifest import Box, Image
from nightowl.data.schedule import most_objects, ranges
from nightowl.data.slots import Layout
from nightowl.files import sha256_bytes
from nightowl.params import PrepareParams, TrainParams
from nightowl.training.quiet import silence

silence()

from ultralytics.cfg import get_cfg  # noqa: E402 - it reads its environment when imported
from ultralytics.data import build_dataloader, build_yolo_dataset  # noqa: E402

SIDE, BATCH = 640, 16
PARAMS = TrainParams(global_batch=BATCH, epochs=10**5)
SIZES = [(640, 480), (800, 600), (1024, 768), (1280, 720), (480, 640), (720, 1280)]


def write_images(folder: Path, number: int) -> tuple[PackedImages, Labels]:
    """A YOLO data set of `number` images with 7 boxes each in `folder`, and the same as our prepared cache, raw."""
    random = np.random.default_rng(0)
    (folder / "images").mkdir()
    (folder / "labels").mkdir()
    images = []
    for index in range(number):
        width, height = SIZES[index % len(SIZES)]
        coarse = random.integers(0, 256, (12, 12, 3), dtype=np.uint8)
        pixels = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
        pixels = cv2.add(pixels, random.integers(0, 24, pixels.shape, dtype=np.uint8))
        content = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes()
        path = f"images/{index:05}.jpg"
        (folder / path).write_bytes(content)
        corners, sides = random.random((7, 2)) * 0.8, 0.05 + 0.15 * random.random((7, 2))
        lines = [f"{index % 3} {x + w / 2} {y + h / 2} {w} {h}\n" for (x, y), (w, h) in zip(corners, sides, strict=True)]
        (folder / f"labels/{index:05}.txt").write_text("".join(lines))
        both = np.concatenate((corners, corners + sides), axis=1) * (width, height, width, height)
        boxes = tuple(Box(index % 3, *row) for row in both.tolist())
        images.append(Image(path, sha256_bytes(content), len(content), width, height, "train", boxes))
    origin = Origin(images, folder, recipe(PrepareParams(image_size=SIDE), "train"))
    built = build_cache(origin, folder / "cache", Means())
    return open_packed(built), labels_of(images)


def upstream(folder: Path, cache: str, workers: int = 0) -> Callable[[], int]:
    """An epoch of ultralytics' own training loader."""
    given = get_cfg(overrides={"imgsz": SIDE, "cache": cache, "task": "detect", "deterministic": False})
    data = {"names": {0: "a", 1: "b", 2: "c"}, "nc": 3, "channels": 3}
    with contextlib.redirect_stdout(io.StringIO()):  # bars
        dataset = build_yolo_dataset(given, str(folder / "images"), BATCH, data, mode="train", rect=False, stride=32)
    loader = build_dataloader(dataset, BATCH, workers=workers, shuffle=True, rank=-1)
    return lambda: sum(len(batch["img"]) for batch in loader)


def ours(images: PackedImages, labels: Labels, workers: int = 0, colour_later: bool = False) -> Callable[[], int]:
    """An epoch of ours; another one each time."""
    loader = TrainingLoader(images, labels, SIDE, PARAMS, num_workers=workers, prefetch_steps=4, colour_later=colour_later)
    epochs = iter(range(10**6))
    return lambda: sum(len(batch) for batch in loader.steps(next(epochs)))


def in_threads(images: PackedImages, labels: Labels, workers: int) -> Callable[[], int]:
    """What threads in place of processes would give: each has a maker, steps are cut up among them."""
    training_set = TrainingSet(images, labels, SIDE, PARAMS.seed)
    makers, pool, epochs = [Maker(training_set) for _ in range(workers)], ThreadPoolExecutor(workers), iter(range(10**6))
    drawn_from, length = ranges(PARAMS, len(images), SIDE, 0), BATCH // workers
    slots = [Layout(1, length, SIDE, most_objects(PARAMS, labels.most())).private() for _ in range(workers)]

    def part(worker: int, epoch: int, first: int) -> int:
        samples = list(range(first + worker * length, first + (worker + 1) * length))
        makers[worker].make(Share(epoch, drawn_from, samples), slots[worker])
        return length

    def epoch_in_threads() -> int:
        epoch, steps = next(epochs), range(0, len(images) - BATCH + 1, BATCH)
        return sum(sum(pool.map(part, range(workers), [epoch] * workers, [at] * workers)) for at in steps)

    return epoch_in_threads


def rate(epoch: Callable[[], int], clock: Callable[[], float]) -> float:
    start = clock()
    number = epoch()
    return number / (clock() - start)


def table(sides: dict[str, Callable[[], int]], base: str, rounds: int, clock: Callable[[], float]) -> None:
    """Medians of `rounds`, all sides in turn, with the ratio to `base` of the same round."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for epoch in sides.values():
        epoch()  # the first round warms page cache and lazy imports
    for _ in range(rounds):
        for name, epoch in sides.items():
            rates[name].append(rate(epoch, clock))
    for name, found in rates.items():
        ratios = [mine / other for mine, other in zip(found, rates[base], strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"{name:<42}{statistics.median(found):8.0f} images/s{statistics.median(ratios):8.2f}x  ({spread})", flush=True)


def limit() -> Iterator[tuple[str, Callable[[], Any]]]:
    """What the memory and single calls of OpenCV need for one image of the training size."""
    image = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    other, planes, hsv = image.copy(), np.empty((3, SIDE, SIDE), np.uint8), cv2.cvtColor(image, cv2.COLOR_BGR2HSV)
    source = np.ascontiguousarray(image[:582, :582])
    yield "copy", lambda: np.copyto(other, image)
    yield "resize 582 to 640", lambda: cv2.resize(source, (SIDE, SIDE), dst=other)
    yield "split to planes", lambda: cv2.split(image, list(planes))
    yield "colour, in place", lambda: apply_gains(planes, (0.01, 0.3, 0.2))
    yield "BGR to HSV", lambda: cv2.cvtColor(image, cv2.COLOR_BGR2HSV, dst=other)
    yield "three tables on planes", lambda: [cv2.LUT(plane, planes[0, 0, :256], dst=plane) for plane in planes]
    yield "HSV to RGB", lambda: cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB, dst=other)
    yield "warpAffine", lambda: cv2.warpAffine(image, np.array([[1.1, 0, 3], [0, 1.1, 4]], np.float32), (SIDE, SIDE), dst=other)


def milliseconds(call: Callable[[], Any], number: int = 50) -> float:
    start = time.process_time()
    for _ in range(number):
        call()
    return (time.process_time() - start) / number * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--workers", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory(prefix="nightowl-loader-") as name:
        packed, labels = write_images(Path(name), given.images)
        if given.profile:
            for what, call in limit():
                print(f"{what:<30}{statistics.median(milliseconds(call) for _ in range(5)):7.3f} ms")
            profiler, epoch = cProfile.Profile(), ours(packed, labels)
            epoch()
            profiler.runcall(epoch)
            pstats.Stats(profiler).sort_stats("tottime").print_stats(18)
            return
        sides = {f"ultralytics, cache={cache}": upstream(Path(name), cache, given.workers) for cache in ("ram", "disk")}
        sides["ours, all on the CPU"] = ours(packed, labels, given.workers)
        sides["ours, colour on the device"] = ours(packed, labels, given.workers, colour_later=True)
        if given.workers:
            sides["ours, all on the CPU, threads"] = in_threads(packed, labels, given.workers)
        table(sides, "ultralytics, cache=ram", given.rounds, time.perf_counter if given.workers else time.process_time)


if __name__ == "__main__":
    main()
