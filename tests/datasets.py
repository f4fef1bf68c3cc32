"""Small data sets on disk in every layout that nightowl reads: grey noise with a filled rectangle for each box."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import PIL.Image

from nightowl.data.manifest import SPLITS, Box, Split

CLASSES = ("scratch", "dent")
WIDTH, HEIGHT = 64, 48
COLOURS = ((200, 40, 40), (40, 200, 40), (40, 40, 200))


@dataclass(frozen=True)
class Sample:
    """One image to write: its name without suffix (folders allowed), boxes in pixels (xyxy), and its split."""

    name: str
    boxes: tuple[Box, ...] = (Box(0, 8, 8, 24, 20),)
    split: Split = "train"


def a_dataset(train: int = 4, val: int = 2, test: int = 2) -> list[Sample]:
    """Samples named by split and number, classes alternating, each with one box at its own place."""
    counts: dict[Split, int] = {"train": train, "val": val, "test": test}
    return [
        Sample(f"{split}{number:03}", (Box(number % 2, 4 + number % 20, 6, 24 + number % 20, 26),), split)
        for split in SPLITS
        for number in range(counts[split])
    ]


def paint(boxes: Sequence[Box], seed: int, width: int = WIDTH, height: int = HEIGHT) -> npt.NDArray[np.uint8]:
    """RGB pixels (H, W, 3): noise that depends on `seed`, and the boxes in the colours of their classes."""
    pixels = np.random.default_rng(seed).integers(90, 160, (height, width, 3), dtype=np.uint8)
    for box in boxes:
        pixels[int(box.y1) : int(box.y2), int(box.x1) : int(box.x2)] = COLOURS[box.class_id % len(COLOURS)]
    return pixels


def write_image(path: Path, boxes: Sequence[Box] = (), seed: int = 0, orientation: int = 1) -> Path:
    """Write a JPEG or PNG of WIDTH x HEIGHT, with an EXIF orientation when that is not 1."""
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = PIL.Image.Exif()
    if orientation != 1:
        exif[0x0112] = orientation
    PIL.Image.fromarray(paint(boxes, seed)).save(path, exif=exif)
    return path


def write_text(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def yolo_line(box: Box, width: int = WIDTH, height: int = HEIGHT) -> str:
    cx, cy = (box.x1 + box.x2) / 2 / width, (box.y1 + box.y2) / 2 / height
    return f"{box.class_id} {cx:.8f} {cy:.8f} {(box.x2 - box.x1) / width:.8f} {(box.y2 - box.y1) / height:.8f}"


def write_yolo_dataset(root: Path, samples: Sequence[Sample], classes: Sequence[str] = CLASSES) -> Path:
    """`images/<split>/*.png`, `labels/<split>/*.txt` and a data.yaml that names the splits that occur."""
    for seed, sample in enumerate(samples):
        write_image(root / "images" / sample.split / f"{sample.name}.png", sample.boxes, seed)
        lines = "".join(yolo_line(box) + "\n" for box in sample.boxes)
        write_text(root / "labels" / sample.split / f"{sample.name}.txt", lines)
    splits = [split for split in SPLITS if any(sample.split == split for sample in samples)]
    entries = "".join(f"{split}: images/{split}\n" for split in splits)
    write_text(root / "data.yaml", f"{entries}nc: {len(classes)}\nnames: [{', '.join(classes)}]\n")
    return root


def coco_values(
    samples: Sequence[Sample], classes: Sequence[str] = CLASSES, first_id: int = 1, step: int = 1
) -> dict[str, object]:
    """The tables of one COCO file; category ids start at `first_id` and go up by `step`, so that there may be gaps."""
    rows = [(number, box) for number, sample in enumerate(samples) for box in sample.boxes]
    return {
        "images": [
            {"id": number, "file_name": f"{sample.name}.png", "width": WIDTH, "height": HEIGHT}
            for number, sample in enumerate(samples)
        ],
        "annotations": [
            {
                "id": number,
                "image_id": image,
                "category_id": first_id + step * box.class_id,
                "bbox": [box.x1, box.y1, box.x2 - box.x1, box.y2 - box.y1],
                "iscrowd": int(box.ignore),
            }
            for number, (image, box) in enumerate(rows)
        ],
        "categories": [{"id": first_id + step * number, "name": name} for number, name in enumerate(classes)],
    }


def write_coco_dataset(root: Path, samples: Sequence[Sample], classes: Sequence[str] = CLASSES) -> Path:
    """`annotations/instances_<split>.json` and `images/<split>/*.png`."""
    for seed, sample in enumerate(samples):
        write_image(root / "images" / sample.split / f"{sample.name}.png", sample.boxes, seed)
    for split in SPLITS:
        of_split = [sample for sample in samples if sample.split == split]
        if of_split:
            write_text(root / "annotations" / f"instances_{split}.json", json.dumps(coco_values(of_split, classes)))
    return root


def voc_xml(boxes: Sequence[Box], classes: Sequence[str] = CLASSES) -> str:
    objects = "".join(
        f"<object><name>{classes[box.class_id]}</name><difficult>{int(box.ignore)}</difficult><bndbox><xmin>{box.x1}</xmin>"
        f"<ymin>{box.y1}</ymin><xmax>{box.x2}</xmax><ymax>{box.y2}</ymax></bndbox></object>"
        for box in boxes
    )
    return f"<annotation><filename>elsewhere.jpg</filename>{objects}</annotation>"


def write_voc_dataset(root: Path, samples: Sequence[Sample], classes: Sequence[str] = CLASSES) -> Path:
    """`JPEGImages/*.png`, `Annotations/*.xml` and `ImageSets/Main/<split>.txt`."""
    for seed, sample in enumerate(samples):
        write_image(root / "JPEGImages" / f"{sample.name}.png", sample.boxes, seed)
        write_text(root / "Annotations" / f"{sample.name}.xml", voc_xml(sample.boxes, classes))
    for split in SPLITS:
        names = [sample.name for sample in samples if sample.split == split]
        if names:
            write_text(root / "ImageSets" / "Main" / f"{split}.txt", "\n".join(names) + "\n")
    return root
