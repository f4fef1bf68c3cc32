"""Which layout a folder has, and the listing that its reader makes of it.

A layout is detected by what lies in the folder and is always said. Two at once, or none, is an error that lists what was
found; `data.layout` in params decides.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from nightowl.data.formats.coco import ROBOFLOW, coco_evidence, list_coco
from nightowl.data.formats.listing import SPLIT_NAMES, Layout, Listing, content_of
from nightowl.data.formats.name_lists import split_by_lists, split_lists
from nightowl.data.formats.unread import unread_images
from nightowl.data.formats.voc import list_voc, voc_evidence
from nightowl.data.formats.yolo import list_yolo, yolo_evidence
from nightowl.errors import DataError
from nightowl.params import DataParams

_EVIDENCE: dict[Layout, Callable[[Path, DataParams], list[str]]] = {
    "yolo": yolo_evidence,
    "coco": coco_evidence,
    "voc": voc_evidence,
}
_READERS: dict[Layout, Callable[[Path, DataParams], Listing]] = {"yolo": list_yolo, "coco": list_coco, "voc": list_voc}
_PARTS = ("annotations", "labels", "images", "jpegimages")
_SPLIT_FOLDERS = frozenset(name for names in SPLIT_NAMES.values() for name in names)
_EXPECTED = (
    "a YOLO data.yaml with `names` and `train`; COCO JSON in annotations/ or */_annotations.coco.json; or a folder of VOC XML "
    "files beside one of images"
)


def detect(root: Path, params: DataParams) -> Layout:
    """The layout of `root`, or that which `data.layout` in params says.

    Raises:
        DataError: when there is no such folder, none of the layouts is found, or more than one.
    """
    require_source(root)
    if params.layout != "auto":
        return params.layout
    found = {layout: evidence for layout in _EVIDENCE if (evidence := _EVIDENCE[layout](root, params))}
    if not found:
        raise DataError(f"{root}: no known layout: it holds {content_of(root)}; expected {_EXPECTED}")
    if len(found) > 1:
        listed = "; ".join(f"{layout} by {', '.join(evidence[:4])}" for layout, evidence in found.items())
        raise DataError(
            f"{root}: {len(found)} layouts at once: {listed}; choose one of {', '.join(found)}: "
            "data.layout in params, or --layout of `nightowl data inspect`"
        )
    return next(iter(found))


def list_source(root: Path, params: DataParams) -> Listing:
    """Everything that the text files of `root` say, with the splits that lists give.

    Raises:
        DataError: as `detect` does, by what a reader refuses, when there are no images, no boxes at all or only boxes within a
            pixel, or when a file's name is no text.
    """
    root = root.absolute()
    listing = _READERS[detect(root, params)](root, params)
    _require_utf8([*(image.path for image in listing.images), *(finding.path for finding in listing.findings)], root)
    unread = unread_images(root, [image.path for image in listing.images])
    if not listing.images:
        also = "".join(f"; {finding.detail}" for finding in unread)
        raise DataError(f"{root}: no images: {listing.description}; it holds {content_of(root)}{also}")
    if not any(image.boxes for image in listing.images):
        raise DataError(
            f"{root}: no boxes at all in {len(listing.images)} images: {listing.description}; "
            f"{_first(listing)}are the labels where this layout has them?"
        )
    if listing.unit == "pixels" and all(max(map(abs, box[1:5])) <= 1 for image in listing.images for box in image.boxes):
        raise DataError(f"{root}: all boxes lie within one pixel: {listing.description}; expected pixels, are these fractions?")
    listing = replace(listing, findings=(*listing.findings, *unread))
    return split_by_lists(root, listing, split_lists(root, params, listing))


def _require_utf8(paths: list[str], root: Path) -> None:
    """A manifest is text: a name that is not UTF-8 could be in it on no machine alike. Raises DataError naming such files."""
    odd = sorted({path for path in paths if path.encode(errors="replace").decode() != path})
    if odd:
        named = ", ".join(path.encode(errors="backslashreplace").decode() for path in odd[:3])
        more = f", and {len(odd) - 3} more" if len(odd) > 3 else ""
        raise DataError(f"{root}: expected file names in UTF-8, found {named}{more}; rename these files")


def require_source(root: Path) -> None:
    """Raises DataError unless `root` is a folder."""
    if not root.exists():
        raise DataError(f"{root}: no such folder; expected the folder of a data set")
    if not root.is_dir():
        raise DataError(f"{root}: expected the folder of a data set, found a file; name its folder: {folder_of(root)}")


def folder_of(file: Path) -> Path:
    """The folder of the data set that `file` belongs to, judged by its name: descriptions lie in it, annotations one below."""
    folder = file.absolute().parent
    within = folder.name.lower() in _PARTS or (folder.name.lower() in _SPLIT_FOLDERS and file.name == ROBOFLOW)
    return folder.parent if within else folder


def _first(listing: Listing) -> str:
    return f"first finding: {listing.findings[0].path}: {listing.findings[0].detail}; " if listing.findings else ""
