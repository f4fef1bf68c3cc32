"""YOLO label files: one object a line, `class cx cy w h` or `class x1 y1 x2 y2 x3 y3 …`, in fractions of the image's sides.

A byte order mark, CRLF, commas between the numbers, tabs and `0.0` for a class are tolerated; the first three are said. Of
points (a polygon, or the four corners of an oriented box) the upright box around them is taken, which is said of four.
A line that cannot be read, whose class id is outside the names, or whose name is not among those of params, is a finding and is
left out; a file that cannot be read quarantines its image.
"""

import math
import re
from codecs import BOM_UTF8
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from nightowl.data.findings import Finding
from nightowl.data.formats.classes import not_among
from nightowl.data.formats.listing import is_image, relative
from nightowl.data.manifest import Box
from nightowl.files import read_regular

# Twice the image's side: what reaches beyond it was not meant as a fraction.
_FARTHEST = 2.0
_OBB_FIELDS = 9
# Text files that annotation tools leave among label files.
_NOT_LABELS = re.compile(r"(classes|notes|obj|README.*|train|val|valid|test)\.(txt|names)", re.IGNORECASE)


def label_path(image: str) -> str:
    """Where the labels of `image` lie: its last `/images/` replaced by `/labels/`, or beside it where there is none."""
    head, found, tail = f"/{image}".rpartition("/images/")
    moved = f"{head}/labels/{tail}" if found else f"/{image}"
    return PurePosixPath(moved).with_suffix(".txt").as_posix().removeprefix("/")


class Names(NamedTuple):
    """What class ids of label files mean: their `names`, which `where` has, and the `classes` of the data set."""

    names: tuple[str, ...]
    where: str
    classes: tuple[str, ...]


def parse_labels(root: Path, image: str, known: Names) -> tuple[tuple[Box, ...] | None, list[Finding]]:
    """The boxes of `image` in fractions (xyxy), None when its label file is unreadable, and what is wrong with it."""
    if not (root / image).is_file():
        return None, [_finding("label_without_image", image, "listed, but there is no such file", "left out")]
    path = label_path(image)
    try:
        content = read_regular(root / path)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        return (), [_finding("image_without_label", image, f"no {path}: taken as background", "kept")]
    except UnicodeDecodeError as error:
        return None, [_finding("unparsable_label", image, f"{path}: not readable as text: {error}", "image quarantined")]
    except OSError as error:
        return None, [_finding("unparsable_label", image, f"{path}: {error.strerror}", "image quarantined")]
    boxes, findings = [], [_finding("label_format", path, oddity, "kept") for oddity in _oddities(content)]
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        box = parse_line(line)
        if isinstance(box, str):
            findings.append(
                _finding("unparsable_label", image, f"{path} line {number}: {box}: {line.strip()[:60]!r}", "left out")
            )
        elif (fault := _class_fault(box.class_id, known)) is not None:
            findings.append(_finding("unknown_class", image, f"{path} line {number}: {fault}", "box quarantined"))
        else:
            boxes.append(box._replace(class_id=known.classes.index(known.names[box.class_id])))
    return tuple(boxes), findings


def _class_fault(class_id: int, known: Names) -> str | None:
    names = known.names
    if not 0 <= class_id < len(names):
        return (
            f"class id {class_id}, but {known.where} has {len(names)} names (ids 0 to {len(names) - 1}); "
            "add the name or correct the label"
        )
    return None if names[class_id] in known.classes else not_among(names[class_id], known.classes)


def parse_line(line: str) -> Box | str:
    """One line as a box in fractions, or what is wrong with it."""
    fields = re.split(r"\s*,\s*", line.strip().rstrip(",")) if "," in line else line.split()
    try:
        class_number, *values = map(float, fields)
    except ValueError:
        return "expected numbers"
    if not all(map(math.isfinite, (class_number, *values))):
        return "expected finite numbers"
    if len(values) >= 4 and max(map(abs, values)) > _FARTHEST:
        return f"expected fractions of the image's sides (0 to 1), found {max(values, key=abs):g}; are these pixels?"
    if not class_number.is_integer():
        return f"expected a whole class id, found {class_number}"
    if len(values) == 4:
        cx, cy, w, h = values
        return Box(int(class_number), cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2)
    if len(values) >= 6 and len(values) % 2 == 0:
        xs, ys = values[0::2], values[1::2]
        return Box(int(class_number), min(xs), min(ys), max(xs), max(ys))
    return f"expected a class and 4 numbers, or a class and at least 3 points, found {len(fields)} numbers"


def once_each(findings: list[Finding]) -> list[Finding]:
    """`findings` with those on the form of label files as one for each form, which says how many files have it."""
    first: dict[str, Finding] = {}
    for finding in findings:
        if finding.kind == "label_format":
            first.setdefault(finding.detail, finding)
    num = Counter(finding.detail for finding in findings if finding.kind == "label_format")
    said = [
        f.model_copy(update={"detail": f"{num[oddity]} label files {oddity}; read all the same"}) for oddity, f in first.items()
    ]
    return [*(finding for finding in findings if finding.kind != "label_format"), *said]


def _oddities(content: bytes) -> list[str]:
    """What is unusual in the form of a label file, all of which is understood."""
    odd = {
        "begin with a byte order mark": content.startswith(BOM_UTF8),
        "end their lines in CRLF": b"\r\n" in content,
        "have commas between the numbers": b"," in content,
        "have objects of four corners, like oriented boxes (OBB), of which the upright box is taken": any(
            len(line.replace(b",", b" ").split()) == _OBB_FIELDS for line in content.splitlines()
        ),
    }
    return [what for what, is_so in odd.items() if is_so]


def stray_labels(root: Path, images: set[str]) -> list[Finding]:
    """Label files, in the folders where labels of `images` are, that belong to none of them."""
    known = {label_path(image) for image in images}
    beside = _images_beside(root, images)
    findings = []
    for folder in sorted({PurePosixPath(path).parent.as_posix() for path in known}):
        for file in sorted((root / folder).glob("*.txt")):
            path = relative(root, file)
            if path in known or _NOT_LABELS.fullmatch(file.name):
                continue
            image = beside.get(path)
            findings.append(
                _finding("image_without_split", image, "has labels, but no split lists it", "left out")
                if image
                else _finding("label_without_image", path, "no image of this name", "left out")
            )
    return findings


def _images_beside(root: Path, images: set[str]) -> dict[str, str]:
    """Label path to image path, for every image file in the folders of `images`."""
    homes = {PurePosixPath(image).parent for image in images}
    files = (file for home in homes if (root / home).is_dir() for file in (root / home).iterdir() if is_image(file))
    return {label_path(path): path for path in (relative(root, file) for file in files)}


def _finding(kind: str, path: str, detail: str, action: str) -> Finding:
    return Finding.model_validate({"kind": kind, "path": path, "detail": detail, "action": action})
