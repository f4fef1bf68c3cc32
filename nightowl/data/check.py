"""Boxes that cannot be trained on, told from those that can. Pure: it sees numbers, no pixels."""

from collections.abc import Iterable, Sequence

from nightowl.data.findings import Action, Finding, Kind
from nightowl.data.images import Size
from nightowl.data.manifest import Box

# Formats round to whole pixels or six digits of a fraction: an overhang below this is that, and is cut off without a finding.
ROUNDING_PX = 0.5


def check_boxes(path: str, size: Size, boxes: Iterable[Box], classes: Sequence[str]) -> tuple[tuple[Box, ...], list[Finding]]:
    """The usable boxes (xyxy, pixels, inside the image), and a finding for each that was clipped or quarantined.

    `classes` are the names of the class indexes, as a person knows no others."""
    kept: dict[tuple[float, ...], Box] = {}
    findings = []
    for box in boxes:
        name = classes[box.class_id]
        usable, finding = _check(path, size, box, name)
        if usable is not None and box[:5] in kept:
            usable, finding = (
                None,
                _finding("duplicate_box", path, box, f"{_said(box, name)} is there twice", "box quarantined"),
            )
        if usable is not None:
            kept[box[:5]] = usable
        if finding is not None:
            findings.append(finding)
    return tuple(kept.values()), findings


def _check(path: str, size: Size, box: Box, name: str) -> tuple[Box | None, Finding | None]:
    if box.x2 < box.x1 or box.y2 < box.y1:
        return None, _finding("inverted_box", path, box, f"{_said(box, name)} ends before it begins", "box quarantined")
    if box.x2 == box.x1 or box.y2 == box.y1:
        return None, _finding("zero_area_box", path, box, f"{_said(box, name)} has no area", "box quarantined")
    clipped = _clip(box, size)
    if clipped.x2 <= clipped.x1 or clipped.y2 <= clipped.y1:
        detail = f"{_said(box, name)} lies outside {size.width}x{size.height}"
        return None, _finding("out_of_frame_box", path, box, detail, "box quarantined")
    overhang = max(abs(a - b) for a, b in zip(box[1:5], clipped[1:5], strict=True))
    if overhang > ROUNDING_PX:
        detail = f"{_said(box, name)} reaches {overhang:.1f} px beyond {size.width}x{size.height}"
        return clipped, _finding("out_of_frame_box", path, box, detail, "clipped")
    return clipped, None


def _clip(box: Box, size: Size) -> Box:
    width, height = size
    return box._replace(
        x1=min(max(box.x1, 0), width), y1=min(max(box.y1, 0), height),
        x2=min(max(box.x2, 0), width), y2=min(max(box.y2, 0), height),
    )  # fmt: skip


def _said(box: Box, name: str) -> str:
    corners = ", ".join(f"{value:g}" for value in box[1:5])
    return f"box of class {name} at ({corners})"


def _finding(kind: Kind, path: str, box: Box, detail: str, action: Action) -> Finding:
    return Finding(kind=kind, path=path, detail=detail, action=action, box=box[1:5])
