"""Findings: what is wrong with a dataset, one record a fault, so that nothing is dropped in silence."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from nightowl.files import write_atomic

Kind = Literal[
    "unreadable_image",
    "image_without_label",
    "image_without_split",
    "label_without_image",
    "unparsable_label",
    "zero_area_box",
    "inverted_box",
    "out_of_frame_box",
    "duplicate_box",
    "split_overlap",
    "same_content",
]


class Finding(BaseModel):
    """One fault. `path` is inside the source; `action` is what was done about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    path: str
    detail: str
    action: Literal["image quarantined", "box quarantined", "clipped", "kept", "left out"]


_FINDINGS = TypeAdapter(list[Finding])


def write_findings(path: Path, findings: list[Finding]) -> None:
    """Publish the findings at `path` as a JSON list, in the order given."""
    write_atomic(path, _FINDINGS.dump_json(findings, indent=2) + b"\n")


def read_findings(path: Path) -> list[Finding]:
    return _FINDINGS.validate_json(path.read_bytes())
