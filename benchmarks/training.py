"""Images a second of the whole training loop on the CPU, validation included: ours in fp32 and in `auto`, and ultralytics' own.

    python -m benchmarks.training [EPOCHS]

yolo11n, 320 px, batch 8, the same images, one thread, no loader processes. The figure is processor time an epoch, so that a
busy machine disturbs it little; the first epoch is left out. The three run one after the other.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

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

SIZE, BATCH, NUM_TRAIN, NUM_VAL = 320, 8, 64, 16


class Times(Unwatched):
    """Processor time at each epoch's end."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def epoch_done(self, end: EpochEnd) -> None:
        self.at.append(time.process_time())


def make_images(root: Path) -> Manifest:
    """Noise with a coloured square or two, with YOLO labels beside for ultralytics."""
    images = []
    for number in range(NUM_TRAIN + NUM_VAL):
        split = "train" if number < NUM_TRAIN else "val"
        random = np.random.default_rng(number)
        pixels = random.integers(60, 120, (SIZE, SIZE, 3), dtype=np.uint8)
        x, y, side = (int(v) for v in (*random.integers(0, 200, 2), random.integers(40, 120)))
        pixels[y : y + side, x : x + side, number % 3] = 250
        path = root / "images" / split / f"{number}.jpg"
        label = root / "labels" / split / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        label.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(pixels).save(path, quality=95)
        centre = [(x + side / 2) / SIZE, (y + side / 2) / SIZE, side / SIZE, side / SIZE]
        label.write_text(f"{number % 2} {' '.join(map(str, centre))}\n")
        box = Box(number % 2, x, y, x + side, y + side)
        name = str(path.relative_to(root))
        images.append(Image(name, sha256_file(path), path.stat().st_size, SIZE, SIZE, split, (box,)))  # type: ignore[arg-type]
    (root / "data.yaml").write_text(f"path: {root}\ntrain: images/train\nval: images/val\nnames: [a, b]\n")
    return Manifest(("a", "b"), tuple(sorted(images, key=lambda image: image.path)), "given")


def ours(root: Path, manifest: Manifest, precision: str, epochs: int) -> list[float]:
    train = {"base": "yolo11n.yaml", "epochs": epochs, "global_batch": BATCH, "optimizer": "AdamW", "lr0": 0.001}
    params = Params.model_validate({"prepare": {"image_size": SIZE}, "train": {**train, "precision": precision}})
    settings = Settings(home=root / "home", device="cpu", sources={"b": str(root)}, num_workers=0)
    workspace = Workspace(root, "b", settings)
    write_manifest(workspace.dataset, manifest)
    write_record(workspace.base, BaseWeights(kind="yaml", name="yolo11n.yaml", sha256=None))
    base, dataset = pinned(workspace)
    times = Times()
    train_on(prepared(params, workspace, dataset, base), "cpu", Alone(), None, times, AnyStop(()))
    return times.at


def theirs(root: Path, epochs: int) -> list[float]:
    from ultralytics.models.yolo.detect import DetectionTrainer

    given = {"model": "yolo11n.yaml", "data": str(root / "data.yaml"), "imgsz": SIZE, "batch": BATCH, "nbs": BATCH}
    where = {"device": "cpu", "workers": 0, "plots": False, "save_dir": str(root / "run"), "cache": "ram", "verbose": False}
    trainer = DetectionTrainer(overrides={**given, **where, "epochs": epochs, "optimizer": "AdamW", "lr0": 0.001})
    at: list[float] = []
    trainer.add_callback("on_fit_epoch_end", lambda _: at.append(time.process_time()))
    trainer.train()
    return at[:epochs]


def main() -> None:
    torch.set_num_threads(1)
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        manifest = make_images(root)
        sides: dict[str, Callable[[], list[float]]] = {
            "ours, fp32": lambda: ours(root, manifest, "fp32", epochs),
            "ours, auto": lambda: ours(root, manifest, "auto", epochs),
            "ultralytics": lambda: theirs(root, epochs),
        }
        rates = {}
        for name, run in sides.items():
            at = run()
            rates[name] = NUM_TRAIN / statistics.median(np.diff(at))
            print(f"{name}: {rates[name]:.1f} images a processor second", flush=True)
        for name in ("ours, fp32", "ours, auto"):
            print(f"{name}: {rates[name] / rates['ultralytics']:.2f}x ultralytics")


if __name__ == "__main__":
    main()
