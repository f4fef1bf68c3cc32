"""Images a second of the whole training loop on the CPU, validation included: ours in fp32 and in `auto`, and ultralytics' own.

    python -m benchmarks.training [--images N] [--epochs N] [--side PIXELS]

yolo11n, batch 8, the same images, one thread, no loader processes; 320 px, 64 images and 6 epochs unless said otherwise, and a
quarter as many images in val. The figure is processor time an epoch, so that a busy machine disturbs it little; the first epoch
is left out. The three run one after the other.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import PIL.Image
import torch

from nightowl.data.manifest import Box, Image, Manifest, write_manifest
from nightowl.files import sha256_file, write_record
from nightowl.params import Params
from nightowl.settings import Settings
from nightowl.stages.training_inputs import pinned, prepared
from nightowl.stages.workspace import Workspace
from nightowl.training.base import BaseWeights
from nightowl.training.group import Alone
from nightowl.training.job import train_on
from nightowl.training.stopping import AnyStop
from nightowl.training.watch import EpochEnd, Unwatched

BATCH = 8


class Size(NamedTuple):
    """Images to train on, epochs, and the side of the images, pixels."""

    images: int
    epochs: int
    side: int


class Times(Unwatched):
    """Processor time at each epoch's end."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def epoch_done(self, end: EpochEnd) -> None:
        self.at.append(time.process_time())


def make_images(root: Path, size: Size) -> Manifest:
    """Noise with a coloured square or two, with YOLO labels beside for ultralytics."""
    images = []
    for number in range(size.images + max(size.images // 4, 1)):
        split = "train" if number < size.images else "val"
        random = np.random.default_rng(number)
        pixels = random.integers(60, 120, (size.side, size.side, 3), dtype=np.uint8)
        x, y, side = (int(v * size.side) for v in (*random.uniform(0, 0.6, 2), random.uniform(0.12, 0.38)))
        pixels[y : y + side, x : x + side, number % 3] = 250
        path = root / "images" / split / f"{number}.jpg"
        label = root / "labels" / split / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        label.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(pixels).save(path, quality=95)
        centre = [(x + side / 2) / size.side, (y + side / 2) / size.side, side / size.side, side / size.side]
        label.write_text(f"{number % 2} {' '.join(map(str, centre))}\n")
        box = Box(number % 2, x, y, x + side, y + side)
        name = str(path.relative_to(root))
        images.append(Image(name, sha256_file(path), path.stat().st_size, size.side, size.side, split, (box,)))  # type: ignore[arg-type]
    (root / "data.yaml").write_text(f"path: {root}\ntrain: images/train\nval: images/val\nnames: [a, b]\n")
    return Manifest(("a", "b"), tuple(sorted(images, key=lambda image: image.path)), "given")


def ours(root: Path, manifest: Manifest, precision: str, size: Size) -> list[float]:
    train = {"base": "yolo11n.yaml", "epochs": size.epochs, "global_batch": BATCH, "optimizer": "AdamW", "lr0": 0.001}
    params = Params.model_validate({"prepare": {"image_size": size.side}, "train": {**train, "precision": precision}})
    settings = Settings(home=root / "home", device="cpu", sources={"b": str(root)}, num_workers=0)
    workspace = Workspace(root, "b", settings)
    write_manifest(workspace.dataset, manifest)
    write_record(workspace.base, BaseWeights(kind="yaml", name="yolo11n.yaml", sha256=None))
    base, dataset = pinned(workspace)
    times = Times()
    train_on(prepared(params, workspace, dataset, base), "cpu", Alone(), None, times, AnyStop(()))
    return times.at


def theirs(root: Path, size: Size) -> list[float]:
    from ultralytics.models.yolo.detect import DetectionTrainer

    given = {"model": "yolo11n.yaml", "data": str(root / "data.yaml"), "imgsz": size.side, "batch": BATCH, "nbs": BATCH}
    where = {"device": "cpu", "workers": 0, "plots": False, "save_dir": str(root / "run"), "cache": "ram", "verbose": False}
    trainer = DetectionTrainer(overrides={**given, **where, "epochs": size.epochs, "optimizer": "AdamW", "lr0": 0.001})
    at: list[float] = []
    trainer.add_callback("on_fit_epoch_end", lambda _: at.append(time.process_time()))
    trainer.train()
    return at[: size.epochs]


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("images", 64), ("epochs", 6), ("side", 320)):
        parser.add_argument(f"--{name}", type=int, default=default)
    size = Size(**vars(parser.parse_args()))
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        manifest = make_images(root, size)
        sides: dict[str, Callable[[], list[float]]] = {
            "ours, fp32": lambda: ours(root, manifest, "fp32", size),
            "ours, auto": lambda: ours(root, manifest, "auto", size),
            "ultralytics": lambda: theirs(root, size),
        }
        rates = {}
        for name, run in sides.items():
            at = run()
            rates[name] = size.images / statistics.median(np.diff(at))
            print(f"{name}: {rates[name]:.1f} images a processor second", flush=True)
        for name in ("ours, fp32", "ours, auto"):
            print(f"{name}: {rates[name] / rates['ultralytics']:.2f}x ultralytics")


if __name__ == "__main__":
    main()
