"""The manifest: what the data is, independent of where it lies.

One JSON line for the header, then one a image in order of path, each in canonical JSON. The SHA-256 of the file is the
dataset version: the same images, labels and splits give the same version on any machine, and `sha256sum` can check it.

Boxes are `boxes_xyxy`: pixels of the image as seen (EXIF rotation applied), x to the right, y down, origin at the top left
corner of the top left pixel.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from nightowl.errors import DataError, remedy
from nightowl.files import canonical_json, sha256_bytes, write_atomic

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
FORMAT = 1


class Box(NamedTuple):
    """One labelled object: its class index and its corners in pixels (xyxy). `ignore` marks a crowd: neither hit nor miss."""

    class_id: int
    x1: float
    y1: float
    x2: float
    y2: float
    ignore: bool = False


class Window(NamedTuple):
    """A part of an image, in its pixels: the left and top edge, and the size."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Image:
    """One image: its path inside the source ('/' between folders), content digest, size in pixels as seen, and labels.

    With a `window` it is that part of the image alone: `width`, `height` and `boxes` are the part's, path and digest the
    whole's. Such a one is made for training and never pinned.
    """

    path: str
    sha256: str
    num_bytes: int
    width: int
    height: int
    split: Split
    boxes: tuple[Box, ...]
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A whole dataset version. `split_rule` says in words where the splits came from."""

    classes: tuple[str, ...]
    images: tuple[Image, ...]
    split_rule: str
    data_params: str = ""

    def of(self, split: Split) -> tuple[Image, ...]:
        """The images of one split, in order of path."""
        return tuple(image for image in self.images if image.split == split)

    def num_images(self) -> dict[Split, int]:
        counts = Counter(image.split for image in self.images)
        return {split: counts[split] for split in SPLITS}

    def num_boxes(self) -> dict[str, int]:
        """Boxes a class over all splits, crowds not counted; a class without any is there with 0."""
        counts = Counter(box.class_id for image in self.images for box in image.boxes if not box.ignore)
        return {name: counts[index] for index, name in enumerate(self.classes)}

    def to_bytes(self) -> bytes:
        return "".join(line + "\n" for line in _lines(self)).encode()

    def version(self) -> str:
        """The dataset version: SHA-256 (hex) over the canonical bytes."""
        return sha256_bytes(self.to_bytes())


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Publish the manifest at `path` in one rename."""
    write_atomic(path, manifest.to_bytes())


def read_manifest(path: Path) -> Manifest:
    """The manifest at `path`.

    Raises:
        DataError: when it is absent, of another format, or broken; the line is named.
    """
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except FileNotFoundError:
        raise DataError(f"{path}: no such manifest; {remedy(path)}") from None
    try:
        header = json.loads(lines[0])
        if header["format"] != FORMAT:
            raise DataError(f"{path}: manifest format {header['format']}, expected {FORMAT}; pin the inputs again")
        return Manifest(
            tuple(header["classes"]), tuple(map(_parse_image, lines[1:])), header["split_rule"], header["data_params"]
        )
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not a manifest ({error!r}); pin the inputs again") from error


def in_order(images: Iterable[Image]) -> tuple[Image, ...]:
    """The images sorted by path, the order that a manifest holds them in."""
    return tuple(sorted(images, key=lambda image: image.path))


def _lines(manifest: Manifest) -> Iterator[str]:
    yield canonical_json(
        {
            "format": FORMAT,
            "classes": list(manifest.classes),
            "split_rule": manifest.split_rule,
            "data_params": manifest.data_params,
        }
    )
    for image in manifest.images:
        yield canonical_json(
            {
                "path": image.path,
                "sha256": image.sha256,
                "num_bytes": image.num_bytes,
                "width": image.width,
                "height": image.height,
                "split": image.split,
                "boxes": [_box_row(box) for box in image.boxes],
            }
        )


def _box_row(box: Box) -> list[float | int]:
    corners = [round(value, 3) for value in box[1:5]]
    return [box.class_id, *corners, *([1] if box.ignore else [])]


def _parse_image(line: str) -> Image:
    row = json.loads(line)
    boxes = tuple(Box(b[0], b[1], b[2], b[3], b[4], len(b) > 5) for b in row["boxes"])
    return Image(row["path"], row["sha256"], row["num_bytes"], row["width"], row["height"], row["split"], boxes)
