"""File names that will be confused: the same stem twice, or two names that another file system takes for one. Pure."""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from nightowl.data.findings import Finding, Kind

# What Pillow calls the formats that each suffix promises; MPO is a JPEG with more pictures behind the first.
FORMATS = {
    ".bmp": ("BMP", "DIB"),
    ".jpeg": ("JPEG", "MPO"),
    ".jpg": ("JPEG", "MPO"),
    ".png": ("PNG",),
    ".tif": ("TIFF",),
    ".tiff": ("TIFF",),
    ".webp": ("WEBP",),
}


def check_names(paths: Sequence[str]) -> list[Finding]:
    """Findings on the names of images: same stem, twins, and names in decomposed Unicode."""
    return [*_same_stem(paths), *_twins(paths), *_decomposed(paths)]


def lying_suffix(path: str, image_format: str) -> str | None:
    """What is wrong with the suffix of an image stored in Pillow's `image_format`, or None."""
    suffix = PurePosixPath(path).suffix.lower()
    if image_format in FORMATS.get(suffix, ()):
        return None
    return f"named {suffix or 'without suffix'}, but stored as {image_format}"


def _same_stem(paths: Sequence[str]) -> list[Finding]:
    detail = "its name without suffix is also that of {first}: lists and label files by name may mean either"
    return _repeated("same_stem", paths, lambda path: PurePosixPath(path).stem, detail)


def _twins(paths: Sequence[str]) -> list[Finding]:
    detail = "another file system takes it for {first}: the names differ in case or in how Unicode is composed alone"
    return _repeated("name_twins", paths, lambda path: unicodedata.normalize("NFC", path).casefold(), detail)


def _repeated(kind: Kind, paths: Sequence[str], key: Callable[[str], str], detail: str) -> list[Finding]:
    """A finding for each path whose key an earlier one has."""
    groups: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        groups[key(path)].append(path)
    return [
        Finding(kind=kind, path=path, detail=detail.replace("{first}", first), action="kept", other=first)
        for first, *others in groups.values()
        for path in others
    ]


def _decomposed(paths: Sequence[str]) -> list[Finding]:
    """One finding for all names that hold letters and marks apart, as macOS writes them."""
    odd = sorted(path for path in paths if unicodedata.normalize("NFC", path) != path)
    if not odd:
        return []
    detail = f"{len(odd)} names hold accents apart from their letters (Unicode NFD): lists written elsewhere may not match"
    return [Finding(kind="decomposed_name", path=odd[0], detail=detail, action="kept")]
