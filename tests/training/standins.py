"""Stand-ins that work: batches and val images made of numbers, a store of plain files, a watcher that remembers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nightowl.checkpoint.commits import Moment
from nightowl.checkpoint.serialise import from_bytes, to_bytes
from nightowl.data.batch import Batch
from nightowl.data.manifest import Window
from nightowl.evaluation.preprocess import Letterbox, plan_letterbox
from nightowl.evaluation.truth import Truth
from nightowl.files import write_atomic
from nightowl.params import TrainParams
from nightowl.training.compute import Compute
from nightowl.training.group import Alone, Group
from nightowl.training.loop import Training, no_fault
from nightowl.training.plan import Plan
from nightowl.training.state import State
from nightowl.training.stopping import AnyStop, StopSource
from nightowl.training.validation import Validator, View
from nightowl.training.watch import EpochEnd, Start
from nightowl.training.yolo import build

SIZE, CLASSES = 64, ("a", "b")
FP32 = Compute(precision="fp32", memory_format="contiguous")


def an_image(number: int, seed: int = 0) -> tuple[NDArray[np.uint8], list[tuple[int, float, float, float, float]]]:
    """Noise (3, SIZE, SIZE) with a bright square or two, and their class and cxcywh."""
    random = np.random.default_rng((seed, number))
    pixels = random.integers(60, 120, (3, SIZE, SIZE), np.uint8)
    boxes = []
    for _ in range(1 + number % 2):
        x, y = random.integers(0, SIZE - 24, 2)
        side, class_id = int(random.integers(12, 24)), int(random.integers(0, 2))
        pixels[class_id, y : y + side, x : x + side] = 250
        boxes.append((class_id, (x + side / 2) / SIZE, (y + side / 2) / SIZE, side / SIZE, side / SIZE))
    return pixels, boxes


def a_batch(numbers: list[int], seed: int = 0) -> Batch:
    images = [an_image(number, seed) for number in numbers]
    rows = [(owner, *box) for owner, (_, boxes) in enumerate(images) for box in boxes]
    return Batch(
        images=np.stack([pixels for pixels, _ in images]) if images else np.zeros((0, 3, SIZE, SIZE), np.uint8),
        boxes_cxcywh_norm=np.array([row[2:] for row in rows], np.float32).reshape(-1, 4),
        class_ids=np.array([row[1] for row in rows], np.int64),
        owners=np.array([row[0] for row in rows], np.int64),
        samples=np.array(numbers, np.int64),
    )


@dataclass(frozen=True)
class NumberLoader:
    """The Loader's contract on made-up images, another order each epoch."""

    num_images: int
    global_batch: int
    rank: int = 0
    world_size: int = 1

    def num_steps(self) -> int:
        return -(-self.num_images // self.global_batch)

    def steps(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        order = np.random.default_rng((7, epoch)).permutation(self.num_images)
        for step in range(first, self.num_steps()):
            chosen = order[step * self.global_batch : (step + 1) * self.global_batch].tolist()
            low, high = (len(chosen) * (self.rank + more) // self.world_size for more in (0, 1))
            yield a_batch(chosen[low:high], seed=epoch)


class NumberVal:
    """Letterboxed val images; they are square, so that nothing moves."""

    def __init__(self, num: int) -> None:
        self.images = [an_image(1000 + number) for number in range(num)]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[NDArray[np.uint8], Letterbox]:
        return self.images[index][0], plan_letterbox(SIZE, SIZE, SIZE)[0]

    def views(self) -> list[View]:
        return [View(index, Window(0, 0, SIZE, SIZE)) for index in range(len(self))]

    def truth(self) -> Truth:
        rows = [(index, *box) for index, (_, boxes) in enumerate(self.images) for box in boxes]
        centres, sides = (np.array([row[a : a + 2] for row in rows]) * SIZE for a in (2, 4))
        return Truth(
            CLASSES,
            tuple(map(str, range(len(self.images)))),
            np.array([row[0] for row in rows], np.int32),
            np.array([row[1] for row in rows], np.int32),
            np.concatenate([centres - sides / 2, centres + sides / 2], axis=1),
            np.zeros(len(rows), np.bool_),
        )


@dataclass
class FolderStore:
    """States as files, the newest in `newest.pt`, written in the step; due every `every` steps."""

    folder: Path
    every: int = 1
    asked: int = 0
    moments: list[Moment] = field(default_factory=list)

    def is_due(self) -> bool:
        self.asked += 1
        return self.asked % self.every == 0

    def save(self, capture: Callable[[], State], moment: Moment) -> None:
        self.moments.append(moment)
        write_atomic(self.folder / "newest.pt", to_bytes(capture()))

    def flush(self) -> None:
        return

    def newest(self) -> State | None:
        path = self.folder / "newest.pt"
        return from_bytes(path.read_bytes()) if path.exists() else None


@dataclass
class Memory:
    """A watcher that remembers."""

    starts: list[Start] = field(default_factory=list)
    losses: list[dict[str, float]] = field(default_factory=list)
    ends: list[EpochEnd] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def started(self, start: Start) -> None:
        self.starts.append(start)

    def batch_done(self, epoch: int, batch: int, losses: dict[str, float], waited_seconds: float) -> None:
        self.losses.append(losses)

    def validating(self, epoch: int) -> None:
        return

    def epoch_done(self, end: EpochEnd) -> None:
        self.ends.append(end)

    def note(self, text: str) -> None:
        self.notes.append(text)


def small(name: str = "yolo11n.yaml", width: float = 0.0625) -> Mapping[str, object]:
    """The architecture `name`, so narrow that a test can afford to train it."""
    from nightowl.training.architecture import architecture

    whole = dict(architecture(name))
    scale = str(whole["scale"])
    return {**whole, "scales": {scale: [0.34, width, 128]}}


def a_plan(
    num_images: int = 12, compute: Compute = FP32, micro_batch: int | None = None, base: str = "", **train: object
) -> Plan:
    values = {"epochs": 2, "global_batch": 4, "optimizer": "AdamW", "lr0": 0.001, "warmup_epochs": 1.0, **train}
    params = TrainParams.model_validate(values)
    return Plan(
        params=params,
        image_size=SIZE,
        classes=CLASSES,
        num_images=num_images,
        num_steps=-(-num_images // params.global_batch),
        architecture=small(base or "yolo11n.yaml"),
        base=None,
        device="cpu",
        compute=compute,
        micro_batch=micro_batch or params.global_batch,
        val_batch=2,
    )


def a_training(
    plan: Plan,
    group: Group | None = None,
    store: FolderStore | None = None,
    stop: StopSource | None = None,
    fault: Callable[[str, int, int], None] = no_fault,
    num_val: int = 4,
    found: State | None = None,
) -> Training:
    """A training of `plan` on made-up images."""
    group = group or Alone()
    val = NumberVal(num_val)
    head = "end2end" if "26" in str(plan.architecture and plan.architecture["yaml_file"]) else "raw"
    return Training(
        plan=plan,
        pieces=build(plan),
        loader=NumberLoader(plan.num_images, plan.params.global_batch, group.rank, group.world_size),
        validator=Validator(val, val.views(), val.truth(), SIZE, head, plan.device, group),  # type: ignore[arg-type]
        group=group,
        stop=stop or AnyStop(()),
        watcher=Memory(),
        store=store,
        found=found or (store.newest() if store else None),
        fault=fault,
    )
