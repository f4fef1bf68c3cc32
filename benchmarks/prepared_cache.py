"""The prepared cache: bytes of its JPEG form, speed of a warm epoch, memory over four ranks, cost of one percent new images and
of the check of all.

    python -m benchmarks.prepared_cache [--images 1500] [--repeats 5] [--source FOLDER] [--folder FOLDER]

Sources are JPEGs of 640x480 to 1280x720, drawn with the falling spectrum and the noise of photographs, or those of `--source`;
the training size is 640. Upstream's `cache=ram` is ultralytics' own `load_image` from images held in memory. Both sides of a
ratio run in turn; it is of process time where a core's work is compared, and of wall time where the disk takes part.
"""

import argparse
import gc
import io
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import PIL.Image

from nightowl.data.cache.build import Means, build_cache
from nightowl.data.cache.forms import Form
from nightowl.data.cache.packed import PackedImages
from nightowl.data.cache.reading import open_packed
from nightowl.data.cache.recipe import Origin, Recipe
from nightowl.data.cache.whole import LastDecoded
from nightowl.data.images import read_size
from nightowl.data.manifest import Image
from nightowl.files import sha256_file
from nightowl.progress import untracked
from nightowl.training.quiet import silence

SIZE, QUALITY, NUM_RANKS = 640, 95, 4
SHAPES = ((640, 480), (800, 600), (1024, 768), (1280, 720))
RAW, JPEG = (Recipe(SIZE, "load_image", form) for form in (Form("raw"), Form("jpeg", QUALITY)))
QUIET = Means(say=lambda line: None, progress=untracked, check_after_seconds=0)


def scenery(side: int = 2048) -> tuple[np.ndarray, np.ndarray]:
    """A field (side, side, 3) of octaves of noise whose amplitude falls with the scale, and one of sensor noise."""
    draw, total = np.random.default_rng(0), np.zeros((side, side, 3), np.float32)
    for octave in range(3, 11):
        coarse = draw.normal(0, 60 / 2 ** (0.9 * (octave - 3)), (2**octave, 2**octave, 3)).astype(np.float32)
        total += cv2.resize(coarse, (side, side), interpolation=cv2.INTER_CUBIC)
    return 120 + total.mean(2, keepdims=True) * 1.4 + total * 0.3, draw.normal(0, 6, total.shape).astype(np.float32)


def make_sources(folder: Path, num_images: int) -> list[Image]:
    """Cuttings of a scenery, each with its own cutting of the noise, as a camera would give them."""
    draw, fields = np.random.default_rng(1), scenery()
    for number in range(num_images):
        width, height = SHAPES[number % len(SHAPES)]
        places = [(draw.integers(0, len(f) - height), draw.integers(0, len(f) - width)) for f in fields]
        pixels = np.sum([f[y : y + height, x : x + width] for f, (y, x) in zip(fields, places, strict=True)], axis=0)
        PIL.Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{number:05}.jpg", quality=90)
    return listed(folder)


def listed(folder: Path) -> list[Image]:
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png")):
        size, name = read_size(path), str(path.relative_to(folder))
        found.append(Image(name, sha256_file(path), path.stat().st_size, size.width, size.height, "train", ()))
    return found


def psnr(first: np.ndarray, second: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.mean((first.astype(float) - second) ** 2)))


def jpeg_bytes(images: Sequence[Image], source: Path, home: Path) -> None:
    """Bytes on disk of the JPEG form against Pillow's JPEGs of the same pixels at the same quality; PSNR of both."""
    packed = open_packed(build_cache(Origin(images, source, JPEG), home, QUIET))
    on_disk = sum(path.stat().st_size for path in packed.index.parents[1].rglob("*") if path.is_file())
    theirs, ours_db, theirs_db, whole = 0, [], [], LastDecoded(source)
    for number, image in enumerate(images):
        pixels, buffer = RAW.pixels(image, whole), io.BytesIO()
        PIL.Image.fromarray(pixels[:, :, ::-1]).save(buffer, "JPEG", quality=QUALITY)
        theirs += buffer.tell()
        ours_db.append(psnr(packed.image(number), pixels))
        theirs_db.append(psnr(np.asarray(PIL.Image.open(buffer))[:, :, ::-1], pixels))
    raw = sum(3 * packed.size(number).width * packed.size(number).height for number in range(len(packed)))
    print(f"JPEG form: {on_disk / theirs:.3f} times the bytes of the sources at training size and quality {QUALITY}")
    print(
        f"  PSNR {statistics.mean(ours_db):.2f} dB, theirs {statistics.mean(theirs_db):.2f}; raw is {raw / on_disk:.1f} times"
    )


def warm_epoch(packed: PackedImages, repeats: int) -> None:
    """Process time of reading and letterboxing every image in a random order, ours over upstream's from memory."""
    silence()
    from ultralytics.data.augment import LetterBox
    from ultralytics.data.base import BaseDataset

    held = [packed.image(number).copy() for number in range(len(packed))]
    theirs = SimpleNamespace(
        ims=held,
        im_files=[None] * len(held),
        npy_files=[None] * len(held),
        im_hw0=[packed.original_size(number)[::-1] for number in range(len(held))],
        im_hw=[image.shape[:2] for image in held],
    )
    order, place = np.random.default_rng(0).permutation(len(packed)).tolist(), LetterBox((SIZE, SIZE))

    def epoch(read: Callable[[int], Any]) -> float:
        begun = time.process_time()
        for number in order:
            place(image=read(number))
        return time.process_time() - begun

    def read_only(read: Callable[[int], Any]) -> float:
        begun = time.process_time()
        for number in order:
            read(number)
        return (time.process_time() - begun) / len(order) * 1e6

    def upstream(number: int) -> Any:
        return BaseDataset.load_image(theirs, number)[0]

    pairs = [(epoch(packed.image), epoch(upstream)) for _ in range(repeats + 1)][1:]
    ratios = sorted(ours / other for ours, other in pairs)
    ours_us, theirs_us = (statistics.median(read_only(read) for _ in range(repeats)) for read in (packed.image, upstream))
    rate = len(order) / statistics.median(ours for ours, _ in pairs)
    print(f"warm epoch, raw, read and letterbox: {statistics.median(ratios):.3f} times cache=ram's time "
          f"({ratios[0]:.2f} to {ratios[-1]:.2f}); {rate:.0f} images/s a core; reading alone {ours_us:.1f} and "
          f"{theirs_us:.1f} us an image")  # fmt: skip


def _rank(index: Path, pipe: Any) -> None:
    before = memory()
    packed = open_packed(index)
    total = sum(int(packed.image(number)[::8, ::8].sum()) for number in range(len(packed)))
    pipe.send(before)
    pipe.recv()
    pipe.send((memory(), total))
    pipe.recv()


def memory() -> tuple[int, int]:
    """Bytes of this process: its proportional share of all it maps (Pss), and its anonymous pages alone."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    fields = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    return fields["Pss"], fields["Pss_Anon"]


def ranks(index: Path, num_bytes: int) -> None:
    """Memory that four processes take to have read all images, over the bytes of one copy; all alive when it is measured."""
    context, started = get_context("spawn"), []
    for _ in range(NUM_RANKS):
        ours, theirs = context.Pipe()
        process = context.Process(target=_rank, args=(index, theirs))
        process.start()
        started.append((process, ours))
    before = [pipe.recv() for _, pipe in started]
    for _, pipe in started:
        pipe.send(None)
    after = [pipe.recv()[0] for _, pipe in started]
    for process, pipe in started:
        pipe.send(None)
        process.join()
    shared, private = (sum(a[n] - b[n] for a, b in zip(after, before, strict=True)) / num_bytes for n in (0, 1))
    print(f"memory over {NUM_RANKS} ranks: {shared:.3f} copies (of which private {private:.3f}); cache=ram: {NUM_RANKS}")


def rebuild(images: Sequence[Image], source: Path, folder: Path, repeats: int) -> None:
    """Time to add one percent, over that of building all: of the process and of the clock."""
    num_new, rates = max(len(images) // 100, 1), []
    ratios: dict[str, list[float]] = {"process": [], "wall": []}
    checks = list[float]()
    for repeat in range(repeats):
        home = folder / f"rebuild-{repeat}"
        full = timed(partial(build_cache, Origin(images[num_new:], source, RAW), home, QUIET))
        more = timed(partial(build_cache, Origin(images, source, RAW), home, QUIET))
        for name, part, whole in zip(ratios, more, full, strict=True):
            ratios[name].append(part / whole)
        rates.append(len(images) / full[0])
        checks.append(first_reads(open_packed(build_cache(Origin(images, source, RAW), home, QUIET))) / full[0])
        shutil.rmtree(home)
    for name, values in ratios.items():
        print(f"adding 1 % ({num_new} of {len(images)}), {name} time: {statistics.median(values):.2%} of the full build "
              f"({min(values):.2%} to {max(values):.2%})")  # fmt: skip
    print(f"full build: {statistics.median(rates):.0f} images/s a core")
    print(
        f"each image read and checked for the first time, in the first epoch: {statistics.median(checks):.2%} of the full build"
    )


def first_reads(packed: PackedImages) -> float:
    """Seconds of this process's cores that it takes to have every image checked, as whoever reads it first does."""
    begun = time.process_time()
    for number in range(len(packed)):
        packed.stored(number)
    return time.process_time() - begun


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of this process's cores, and of the clock."""
    begun = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - begun[0], time.perf_counter() - begun[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1500)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--source", type=Path, help="a folder of images instead of drawn ones")
    parser.add_argument("--folder", type=Path, help="where the sources and caches of this run go; default: a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        source = options.source or folder / "source"
        source.mkdir(exist_ok=True)
        images = listed(source) if options.source else make_sources(source, options.images)
        print(f"{len(images)} images")
        jpeg_bytes(images[:300], source, folder / "jpeg")
        packed = open_packed(build_cache(Origin(images, source, RAW), folder / "raw", QUIET))
        warm_epoch(packed, options.repeats)
        index, num_bytes = packed.index, packed.num_bytes
        del packed  # a fifth process that maps the images would take a share of their pages
        gc.collect()
        ranks(index, num_bytes)
        rebuild(images, source, folder, options.repeats)


if __name__ == "__main__":
    main()
