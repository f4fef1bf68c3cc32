"""Findings: what is wrong with a dataset, one record a fault, so that nothing is dropped in silence."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from nightowl.errors import DataError, remedy
from nightowl.files import write_atomic

Kind = Literal[
    "unreadable_image",
    "unparsable_label",
    "unknown_class",
    "zero_area_box",
    "inverted_box",
    "out_of_frame_box",
    "duplicate_box",
    "golden_missing",
    "golden_duplicate",
    "same_content_across_splits",
    "near_duplicate_across_splits",
    "alike_across_splits",
    "same_content",
    "near_duplicate",
    "label_without_image",
    "image_without_label",
    "image_without_split",
    "split_overlap",
    "same_stem",
    "name_twins",
    "decomposed_name",
    "label_format",
    "unread_kind",
    "size_mismatch",
    "lying_extension",
    "exif_rotation",
    "sixteen_bit_image",
    "mixed_colour",
    "cmyk_image",
    "alpha_image",
    "class_without_boxes",
    "class_imbalance",
    "no_background_images",
    "class_drift",
    "box_size_drift",
]
Severity = Literal["error", "warning", "notice"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "notice")
# error: cannot be trained or judged on as it is. warning: probably a mistake. notice: good to know.
SEVERITY: dict[Kind, Severity] = {
    "unreadable_image": "error",
    "unparsable_label": "error",
    "unknown_class": "error",
    "zero_area_box": "error",
    "inverted_box": "error",
    "out_of_frame_box": "warning",
    "duplicate_box": "warning",
    "golden_missing": "error",
    "golden_duplicate": "error",
    "same_content_across_splits": "error",
    "near_duplicate_across_splits": "warning",
    "alike_across_splits": "warning",
    "same_content": "notice",
    "near_duplicate": "notice",
    "label_without_image": "warning",
    "image_without_label": "warning",
    "image_without_split": "warning",
    "split_overlap": "warning",
    "same_stem": "warning",
    "name_twins": "warning",
    "decomposed_name": "notice",
    "label_format": "notice",
    "unread_kind": "warning",
    "size_mismatch": "warning",
    "lying_extension": "warning",
    "exif_rotation": "notice",
    "sixteen_bit_image": "notice",
    "mixed_colour": "notice",
    "cmyk_image": "notice",
    "alpha_image": "notice",
    "class_without_boxes": "warning",
    "class_imbalance": "notice",
    "no_background_images": "notice",
    "class_drift": "warning",
    "box_size_drift": "warning",
}
WHOLE = "(whole data set)"  # the path of a finding that is about no single file
Action = Literal["image quarantined", "box quarantined", "clipped", "kept", "left out"]


class Finding(BaseModel):
    """One fault. `path` is inside the source; `action` is what was done about it. `box` is the one at fault (xyxy, pixels),
    `other` the image that it repeats, where there is one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    path: str
    detail: str
    action: Action
    box: tuple[float, float, float, float] | None = None
    other: str | None = None


_FINDINGS = TypeAdapter(list[Finding])


def write_findings(path: Path, findings: list[Finding]) -> None:
    """Publish the findings at `path` as a JSON list, in the order given."""
    write_atomic(path, _FINDINGS.dump_json(findings, indent=2) + b"\n")


def read_findings(path: Path) -> list[Finding]:
    """The findings at `path`. Raises DataError when there are none pinned, or it is something else."""
    try:
        return _FINDINGS.validate_json(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{path}: no pinned findings; {remedy(path)}") from None
    except ValueError as error:
        raise DataError(
            f"{path}: not a list of findings ({' '.join(str(error).split())[:200]}); pin the inputs again"
        ) from error
