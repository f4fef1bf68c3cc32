"""What a layout says, before any image is opened: the common record of all readers, and the rules for paths.

Text inside a data set never leads out of its folder: `..` is resolved by name and must stay inside, and so must an absolute
path. Symbolic links inside the folder are followed wherever they lead: they are the owner's own statement of where data lies
(a DVC cache links its files so), not something a file format said.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, NoReturn

from nightowl.data.findings import Finding
from nightowl.data.images import IMAGE_SUFFIXES, Size
from nightowl.data.manifest import Box, Split
from nightowl.errors import DataError
from nightowl.files import read_regular

Layout = Literal["yolo", "coco", "voc"]
SPLIT_NAMES: dict[Split, tuple[str, ...]] = {"train": ("train",), "val": ("val", "valid", "validation"), "test": ("test",)}


@dataclass(frozen=True, slots=True)
class Labelled:
    """One image as its layout lists it. An image that two splits list is there twice. Boxes are xyxy in the listing's unit;
    `said` is the size in pixels that its labels say it has, where they say one."""

    path: str
    split: Split | None
    boxes: tuple[Box, ...] = ()
    said: Size | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A data set by its text files alone; `unit` says whether boxes are in pixels or in fractions of the image's sides."""

    layout: Layout
    classes: tuple[str, ...]
    images: tuple[Labelled, ...]
    unit: Literal["pixels", "fractions"]
    findings: tuple[Finding, ...]
    description: str


def inside(root: Path, base: Path, entry: str) -> Path | None:
    """`entry` (with either separator) relative to `base`, `..` resolved by name; None when that is outside `root`."""
    candidate = Path(os.path.normpath(base / entry.replace("\\", "/")))
    return candidate if candidate == root or candidate.is_relative_to(root) else None


def relative(root: Path, path: Path) -> str:
    """`path` inside `root`, with '/' between folders."""
    return path.relative_to(root).as_posix()


def walk_files(folder: Path) -> Iterator[Path]:
    """Every file below `folder`, in order of name, through links but never round in circles; hidden ones are passed over."""
    seen: set[tuple[int, int]] = set()
    for place, folders, files in os.walk(folder, onerror=_refuse, followlinks=True):
        status = os.stat(place)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__MACOSX")))
        yield from (Path(place, name) for name in sorted(files) if not name.startswith("."))


def _refuse(error: OSError) -> NoReturn:
    raise error  # a folder that may not be read must not look like an empty one


def is_image(path: Path | str) -> bool:
    return PurePosixPath(path).suffix.lower() in IMAGE_SUFFIXES


def said_size(width: object, height: object) -> Size | None:
    """The size that a label file says, as numbers or digits; None where it says none, as by a zero."""
    written = [str(value).strip() for value in (width, height)]
    if not all(text.isdecimal() for text in written):
        return None
    size = Size(*map(int, written))
    return size if min(size) > 0 else None


def names_of(path: str) -> set[str]:
    """The names by which a list or a table may mean the image at `path`."""
    whole = PurePosixPath(path)
    return {path, whole.with_suffix("").as_posix(), whole.name, whole.stem}


def images_below(root: Path, folder: Path) -> list[str]:
    """Paths inside `root` of the image files below `folder`, sorted."""
    return sorted(relative(root, path) for path in walk_files(folder) if is_image(path))


def split_of_folder(path: str) -> Split | None:
    """The split after which one of the folders of `path` is named, None when none is."""
    folders = path.lower().split("/")[:-1]
    return next((split for split, names in SPLIT_NAMES.items() for name in names if name in folders), None)


def read_text(root: Path, path: Path) -> str:
    """The text of a file of the data set, UTF-8 with or without a byte order mark. Raises DataError."""
    try:
        return read_regular(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise DataError(f"{relative(root, path)}: no such file in {root}; it holds {content_of(root)}") from None
    except (UnicodeDecodeError, OSError) as error:
        raise DataError(f"{path}: cannot be read as UTF-8 text: {error}") from error


def read_lines(root: Path, path: Path) -> list[str]:
    """The lines of a list file, trimmed, without empty ones and comments (#). Raises DataError."""
    lines = (line.strip() for line in read_text(root, path).split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


def content_of(folder: Path, limit: int = 12) -> str:
    """What a folder holds, for an error message: `images/, labels/, data.yaml`, folders first, cut at `limit`."""
    entries = sorted(folder.iterdir(), key=lambda entry: (not entry.is_dir(), entry.name))
    names = [entry.name + ("/" if entry.is_dir() else "") for entry in entries if not entry.name.startswith(".")]
    more = f", and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) + more) or "nothing"


def require_folder(root: Path, name: str, key: str) -> Path:
    """The folder that a param names inside `root`. Raises DataError when it is outside or absent."""
    folder = inside(root, root, name)
    if folder is None or not folder.is_dir():
        raise DataError(f"{key}: {name}: no such folder inside {root}; it holds {content_of(root)}")
    return folder
