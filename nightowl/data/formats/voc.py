"""Pascal VOC: an XML file for each image, matched by name, and lists of names for the splits, or folders
named after them.

Corners are kept as they are written, `xmin..xmax`: the standard counts pixels from 1 and includes the last, but the tools that
write VOC today do not agree on that, and the difference is one pixel. `difficult` becomes ignore, as the VOC evaluation has
it. An image without an XML file was not annotated and is left out; one with an XML file without objects is background.
"""

import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from nightowl.data.findings import Finding
from nightowl.data.formats.classes import class_order, has_control, not_among
from nightowl.data.formats.listing import (
    Labelled,
    Listing,
    content_of,
    images_below,
    relative,
    require_folder,
    said_size,
    split_of_folder,
    walk_files,
)
from nightowl.data.images import Size
from nightowl.data.manifest import Box
from nightowl.errors import DataError
from nightowl.files import open_regular, read_regular
from nightowl.params import DataParams

_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_IMAGE_FOLDERS = ("JPEGImages", "images", "Images", "imgs")
_PEEK_BYTES = 4096

NamedBox = tuple[str, Box]


class Annotation(NamedTuple):
    """One XML file: its boxes by name (class index not set yet), and the size that it says the image has, where it does."""

    boxes: list[NamedBox]
    said: Size | None


def voc_evidence(root: Path, params: DataParams) -> list[str]:
    """What in `root` speaks for this layout; empty when nothing does."""
    return [f"{relative(root, folder)}/*.xml".removeprefix("./") for folder in _annotation_folders(root, params)]


def annotation_and_image_folders(root: Path, params: DataParams) -> tuple[Path, Path]:
    """Where the XML files and where the images are. Raises DataError when that cannot be told."""
    folders = _annotation_folders(root, params)
    if not folders:
        raise DataError(f"{root}: no folder of VOC XML files; it holds {content_of(root)}; name it in params data.annotations")
    if params.images is not None:
        images = require_folder(root, params.images, "params data.images")
        return (folders[0] if len(folders) == 1 else root), images
    if all(any(images_below(root, folder)) for folder in folders):
        return (folders[0], folders[0]) if len(folders) == 1 else (root, root)  # beside their images, as Roboflow has them
    if len(folders) > 1:
        named = ", ".join(relative(root, folder) + "/" for folder in folders)
        raise DataError(f"{root}: XML files in {named}; name one in params data.annotations")
    standard = root / "JPEGImages"
    if folders[0].name == "Annotations" and standard.is_dir():
        return folders[0], standard
    found = [root / name for name in _IMAGE_FOLDERS if (root / name).is_dir()]
    if len(found) != 1:
        raise DataError(
            f"{root}: expected one images folder ({', '.join(_IMAGE_FOLDERS)}) beside {relative(root, folders[0])}/, found "
            f"{len(found)}; it holds {content_of(root)}; name it in params data.images"
        )
    return folders[0], found[0]


def list_voc(root: Path, params: DataParams) -> Listing:
    """The data set in `root`, before lists of names. Raises DataError when parts are missing."""
    annotations, images = annotation_and_image_folders(root, params)
    by_stem, wanted = _by_stem(root, images), None if params.classes is None else class_order((), params.classes)
    read: dict[str, Annotation] = {}
    findings: list[Finding] = []
    for file in walk_files(annotations):
        if file.suffix.lower() != ".xml":
            continue
        image = by_stem.pop(_stem(file.relative_to(annotations)), None)
        if image is None:
            findings.append(_finding("label_without_image", relative(root, file), "no image of this name", "left out"))
            continue
        annotation, faults = _read_xml(file, image, wanted)
        findings += faults
        if annotation is not None:
            read[image] = annotation
    findings += [
        _finding("image_without_label", image, "no XML file: not annotated", "left out") for image in sorted(by_stem.values())
    ]
    classes = class_order(sorted({name for annotation in read.values() for name, _ in annotation.boxes}), params.classes)
    folders = [split_of_folder(image) for image in read]
    by_folder = "train" in folders and None not in folders
    listed = tuple(
        Labelled(
            image,
            split_of_folder(image) if by_folder else None,
            tuple(box._replace(class_id=classes.index(name)) for name, box in annotation.boxes),
            annotation.said,
        )
        for image, annotation in sorted(read.items())
    )
    description = (
        f"VOC layout: XML in {relative(root, annotations)}/, images in {relative(root, images)}/: {len(listed)} images"
    )
    return Listing("voc", classes, listed, "pixels", tuple(findings), description)


def _annotation_folders(root: Path, params: DataParams) -> list[Path]:
    if params.annotations is not None:
        if params.annotations.endswith((".json", ".yaml", ".yml")):
            return []
        folder = require_folder(root, params.annotations, "params data.annotations")
        return [folder] if _holds_voc(folder) else []
    folders = [root, *sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))]
    return [folder for folder in folders if _holds_voc(folder)]


def _holds_voc(folder: Path) -> bool:
    first = next((path for path in sorted(folder.glob("*.xml"))), None)
    if first is None:
        return False
    with open_regular(first) as file:
        return b"<annotation" in file.read(_PEEK_BYTES)


def _by_stem(root: Path, images: Path) -> dict[str, str]:
    """Name without suffix, inside the images folder, to the path inside the source. Raises DataError on two of one name."""
    found: dict[str, str] = {}
    for path in images_below(root, images):
        stem = _stem((root / path).relative_to(images))
        if stem in found:
            raise DataError(f"{root}: {found[stem]} and {path} would share one XML file; rename or remove one")
        found[stem] = path
    return found


def _stem(path: Path) -> str:
    return PurePosixPath(path.as_posix()).with_suffix("").as_posix()


def _read_xml(file: Path, image: str, wanted: tuple[str, ...] | None) -> tuple[Annotation | None, list[Finding]]:
    """What one file says, or None when the file cannot be read, and the findings."""
    try:
        content = read_regular(file)
    except OSError as error:
        return None, [_finding("unparsable_label", image, f"{file.name}: {error.strerror}", "image quarantined")]
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        return None, [_finding("unparsable_label", image, f"{file.name}: declares entities", "image quarantined")]
    try:
        top = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        return None, [_finding("unparsable_label", image, f"{file.name}: not XML: {error}", "image quarantined")]
    if top.tag != "annotation":
        detail = f"{file.name}: expected <annotation> around all, found <{top.tag[:80]}>"
        return None, [_finding("unparsable_label", image, detail, "image quarantined")]
    boxes, findings = [], []
    for number, element in enumerate(top.findall("object"), start=1):
        box = _read_object(element)
        if isinstance(box, str):
            findings.append(_finding("unparsable_label", image, f"{file.name} object {number}: {box}", "left out"))
        elif wanted is not None and box[0] not in wanted:
            detail = f"{file.name} object {number}: {not_among(box[0], wanted)}"
            findings.append(_finding("unknown_class", image, detail, "box quarantined"))
        else:
            boxes.append(box)
    return Annotation(boxes, said_size(top.findtext("size/width"), top.findtext("size/height"))), findings


def _read_object(element: ElementTree.Element) -> NamedBox | str:
    name = " ".join((element.findtext("name") or "").split())
    if not name:
        return "no name"
    if has_control(name):
        return f"name {name!r}: expected a word"
    written = [element.findtext(f"bndbox/{corner}") for corner in _CORNERS]
    try:
        x1, y1, x2, y2 = (float(text or "") for text in written)
    except ValueError:
        return f"bndbox {written}: expected four numbers"
    if not all(map(math.isfinite, (x1, y1, x2, y2))):
        return f"bndbox {written}: expected finite numbers"
    return name, Box(-1, x1, y1, x2, y2, ignore=(element.findtext("difficult") or "0").strip().lower() in ("1", "true"))


def _finding(kind: str, path: str, detail: str, action: str) -> Finding:
    return Finding.model_validate({"kind": kind, "path": path, "detail": detail, "action": action})
