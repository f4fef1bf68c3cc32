"""The golden set: images by content digest that only ever test, and that nothing may be trained on, not even a copy.

`detectors/<name>/golden.txt` is committed: one `sha256  path` a line, as `sha256sum` writes it. The digest decides, the path is
for people: an image that was renamed is still golden. A line that begins with # is a remark.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from nightowl.data.findings import Finding
from nightowl.data.manifest import Image, Manifest
from nightowl.errors import DataError
from nightowl.files import sha256_bytes

_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")
_NONE = "# none\n"


class GoldenImage(NamedTuple):
    """One line of the list."""

    sha256: str
    path: str


def read_golden(path: Path) -> tuple[GoldenImage, ...]:
    """The list at `path`, empty when there is none. Raises DataError on a line that is none, or on a digest given twice."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not readable as UTF-8 text: {error}") from error
    golden = [
        _parse(path, number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip() and line[0] != "#"
    ]
    digests = [image.sha256 for image in golden]
    if len(set(digests)) < len(digests):
        twice = next(image for image in golden if digests.count(image.sha256) > 1)
        raise DataError(f"{path}: {twice.path}: the same content is listed twice; keep one line")
    return tuple(golden)


def golden_text(golden: Sequence[GoldenImage]) -> str:
    """The list as text, in order of path; an empty one says so, as DVC warns of files without content."""
    return "".join(f"{image.sha256}  {image.path}\n" for image in sorted(golden, key=lambda image: image.path)) or _NONE


def golden_paths(dataset: Manifest, golden: Sequence[GoldenImage]) -> frozenset[str]:
    """The paths of the golden images in `dataset`, one for each listed digest that is there."""
    return frozenset(_places(dataset.images, golden).values())


def with_golden(manifest: Manifest, golden: Sequence[GoldenImage]) -> tuple[Manifest, list[Finding]]:
    """`manifest` with its golden images in test, whatever their split was, and a finding for each that is not there."""
    places = _places(manifest.images, golden)
    here = set(places.values())
    images = tuple(replace(image, split="test") if image.path in here else image for image in manifest.images)
    rule = f"{manifest.split_rule}; {len(here)} golden images are test" if here else manifest.split_rule
    return replace(manifest, images=images, split_rule=rule), missing_golden(manifest, golden)


def missing_golden(dataset: Manifest, golden: Sequence[GoldenImage]) -> list[Finding]:
    """A finding for each golden image that is not among the images of `dataset`."""
    there = {image.sha256 for image in dataset.images}
    detail = "golden, but no image of the data has this content (sha256 {})"
    return [
        Finding(kind="golden_missing", path=image.path, detail=detail.format(f"{image.sha256[:12]}…"), action="kept")
        for image in golden
        if image.sha256 not in there
    ]


def choose_golden(dataset: Manifest, fraction: float) -> tuple[GoldenImage, ...]:
    """That fraction of the test images, at least one: those of the lowest hash, so that growing the data changes few."""
    ranked = sorted(
        {image.sha256: image for image in reversed(dataset.of("test"))}.values(),
        key=lambda i: sha256_bytes(f"golden:{i.sha256}".encode()),
    )
    return tuple(GoldenImage(image.sha256, image.path) for image in ranked[: max(1, round(fraction * len(ranked)))])


def listed_golden(dataset: Manifest, names: Sequence[str]) -> tuple[GoldenImage, ...]:
    """The images of these paths. Raises DataError naming the first that is not pinned."""
    by_path = {image.path: image for image in dataset.images}
    unknown = [name for name in names if name not in by_path]
    if unknown or not names:
        found = f"{len(unknown)} are not, first {unknown[0]}" if unknown else "no name"
        raise DataError(
            f"golden set: expected paths of pinned images, found {found}; they are as in inputs/<detector>/manifest.jsonl"
        )
    images = [by_path[name] for name in dict.fromkeys(names)]
    return tuple({image.sha256: GoldenImage(image.sha256, image.path) for image in images}.values())


def refuse_barred(dataset: Manifest, golden: Sequence[GoldenImage], barred: Sequence[GoldenImage]) -> None:
    """The last look before a training: `barred` are the contents that prepare found to be `golden` or copies of such.

    Raises:
        DataError: naming the image, when one of train or val is barred, or when prepare did not know a golden image.
    """
    digests = {image.sha256 for image in barred}
    unknown = [image.path for image in golden if image.sha256 not in digests]
    if unknown:
        raise DataError(f"{unknown[0]}: is golden, but prepare did not know it as such; run the stage prepare again")
    for image in dataset.images:
        if image.sha256 in digests and image.split != "test":
            raise DataError(
                f"{image.path}: is golden or a copy of a golden image, and must never be fitted to, but is in {image.split}; "
                "pin the inputs again and run prepare"
            )


def _places(images: Sequence[Image], golden: Sequence[GoldenImage]) -> Mapping[str, str]:
    """Digest to path of what is there: the listed path where it has that content, else the first in order that has."""
    listed = dict(golden)
    places: dict[str, str] = {}
    for image in images:
        if image.sha256 in listed and (image.sha256 not in places or image.path == listed[image.sha256]):
            places[image.sha256] = image.path
    return places


def _parse(path: Path, number: int, line: str) -> GoldenImage:
    match = _LINE.fullmatch(line.rstrip("\r"))
    if match is None:
        raise DataError(f"{path} line {number}: expected `sha256  path`, found {line[:80]!r}")
    return GoldenImage(*match.groups())
