"""A source data set as one record, whatever its layout: classes, images with size, split and boxes in pixels, and findings."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nightowl.data.findings import Finding
from nightowl.data.formats.detect import list_source
from nightowl.data.formats.listing import Layout, Listing
from nightowl.data.image_table import read_groups
from nightowl.data.images import Size, read_size
from nightowl.data.manifest import SPLITS, Box, Split
from nightowl.data.overlap import one_split_each
from nightowl.data.split import take_splits
from nightowl.data.threads import in_threads
from nightowl.errors import DataError
from nightowl.params import DataParams, SplitParams
from nightowl.progress import Track, untracked


@dataclass(frozen=True, slots=True)
class SourceImage:
    """One image: path inside the source, size as seen, split, and boxes xyxy in its pixels, not yet checked."""

    path: str
    size: Size
    split: Split
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class SourceDataset:
    """A data set as found. `description` says the layout, `split_rule` where the splits came from."""

    layout: Layout
    classes: tuple[str, ...]
    images: tuple[SourceImage, ...]
    findings: tuple[Finding, ...]
    description: str
    split_rule: str

    def num_images(self) -> dict[Split, int]:
        counts = Counter(image.split for image in self.images)
        return {split: counts[split] for split in SPLITS}


def read_source(root: Path, params: DataParams, progress: Track = untracked) -> SourceDataset:
    """The data set in `root`; image files are opened for their size only. Raises DataError."""
    listing = list_source(root, params)
    paths = sorted({image.path for image in listing.images})
    sizes = in_threads(lambda path: size_or_fault(root, path), paths, "reading sizes", progress)
    return assemble(root, listing, dict(zip(paths, sizes, strict=True)), params.split)


def size_or_fault(root: Path, path: str) -> Size | str:
    """The size of an image of the source, or what is wrong with it (without the path)."""
    try:
        return read_size(root / path, path)
    except DataError as error:
        return str(error).removeprefix(f"{path}: ")


def assemble(root: Path, listing: Listing, measured: Mapping[str, Size | str], params: SplitParams) -> SourceDataset:
    """A listing and its measured sizes as one record; an image that could not be measured is quarantined. `root` is read for a
    table of groups alone.

    Raises:
        DataError: when no image can be read, or by `take_splits` and `read_groups`.
    """
    faults = {path: size for path, size in measured.items() if isinstance(size, str)}
    unreadable = [
        Finding(kind="unreadable_image", path=path, detail=fault, action="image quarantined") for path, fault in faults.items()
    ]
    usable, overlaps = one_split_each([image for image in listing.images if image.path not in faults])
    if not usable:
        raise DataError(f"none of {len(faults)} images can be read; first: {unreadable[0].path}: {unreadable[0].detail}")
    groups = read_groups(root.absolute(), params, [image.path for image in usable])
    splits, rule = take_splits({image.path: image.split for image in usable}, params, groups)
    images, odd = [], list[Finding]()
    for image in sorted(usable, key=lambda image: image.path):
        size = measured[image.path]
        assert isinstance(size, Size)
        scaled = [_scaled(box, size if listing.unit == "fractions" else Size(1, 1)) for box in image.boxes]
        boxes = tuple(box for box in scaled if all(map(math.isfinite, box[1:5])))
        odd += [_endless(image.path)] * (len(scaled) - len(boxes))
        odd += [_mismatch(image.path, image.said, size)] if image.said not in (None, size) else []
        images.append(SourceImage(image.path, size, splits[image.path], boxes))
    findings = sorted((*listing.findings, *unreadable, *overlaps, *odd), key=lambda f: (f.kind, f.path, f.detail))
    return SourceDataset(listing.layout, listing.classes, tuple(images), tuple(findings), listing.description, rule)


def _endless(path: str) -> Finding:
    """A box of finite numbers so large that its corners in pixels are not."""
    detail = "a box reaches farther than a number can say"
    return Finding(kind="out_of_frame_box", path=path, detail=detail, action="box quarantined")


def _mismatch(path: str, said: Size | None, size: Size) -> Finding:
    """An image that is not as large as its labels say."""
    assert said is not None
    turned = ": stored so, and turned by its EXIF orientation?" if said == size[::-1] else ""
    detail = f"its labels say {said.width}x{said.height}, the image is {size.width}x{size.height}{turned}"
    return Finding(kind="size_mismatch", path=path, detail=detail, action="kept")


def _scaled(box: Box, scale: Size) -> Box:
    """`box` in pixels, to the thousandth that a manifest keeps, so that it is the same in memory and on disk."""
    width, height = scale
    x1, y1, x2, y2 = box.x1 * width, box.y1 * height, box.x2 * width, box.y2 * height
    return box._replace(x1=round(x1, 3), y1=round(y1, 3), x2=round(x2, 3), y2=round(y2, 3))
