"""Files that look like images, but are of a kind that is not read: said, as they would vanish from the data set in silence."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from nightowl.data.findings import WHOLE, Finding
from nightowl.data.formats.listing import relative, walk_files
from nightowl.data.images import IMAGE_SUFFIXES

_CAMERA_RAW = {".arw", ".cr2", ".cr3", ".dng", ".nef", ".orf", ".raf", ".rw2"}
UNREAD_SUFFIXES = frozenset(
    {".avif", ".dcm", ".exr", ".gif", ".hdr", ".heic", ".heif", ".j2k", ".jfif", ".jp2", ".jpe", ".jxl", ".mpo", ".pbm", ".pgm"}
    | {".pnm", ".ppm", ".psd", ".tga"}
    | _CAMERA_RAW
)
_READ = ", ".join(sorted(IMAGE_SUFFIXES))


def unread_images(root: Path, images: Iterable[str]) -> list[Finding]:
    """One finding, or none, about the folders of `root` that hold `images`; without any images, about all of it."""
    tops = {path.split("/")[0] if "/" in path else "" for path in images} or {""}
    found = sorted({relative(root, file) for top in tops for file in walk_files(root / top) if _is_unread(file)})
    if not found:
        return []
    kinds = Counter(Path(path).suffix.lower() for path in found)
    counted = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    what = "file looks like an image, but is" if len(found) == 1 else "files look like images, but are"
    detail = f"{len(found)} {what} of a kind that is not read ({counted}; first: {found[0]}); read are {_READ}: convert them"
    return [Finding(kind="unread_kind", path=WHOLE, detail=detail, action="left out")]


def _is_unread(file: Path) -> bool:
    return file.suffix.lower() in UNREAD_SUFFIXES
