"""The usable part of a pinned data set: what is left when broken images and boxes are quarantined, with a list and counts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict

from nightowl.data.check import check_boxes
from nightowl.data.findings import Finding, Kind
from nightowl.data.images import Size
from nightowl.data.manifest import SPLITS, Image, Manifest, Split
from nightowl.errors import DataError

# Besides a quarantined image: a label that is gone counts as a broken image too, as its object would be trained as background.
_LOST = ("unparsable_label", "zero_area_box", "inverted_box", "out_of_frame_box")


class PrepareSummary(BaseModel):
    """Counts of one prepared data set. `broken_fraction`: images quarantined, or with a label lost, of all that were read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset_version: str
    split_rule: str
    images: dict[Split, int]
    boxes: dict[str, int]
    quarantined_images: int
    quarantined_boxes: int
    clipped_boxes: int
    broken_fraction: float
    findings: dict[Kind, int]


@dataclass(frozen=True, slots=True)
class Prepared:
    """The usable data set, all findings (pinned ones first), and the counts."""

    dataset: Manifest
    findings: tuple[Finding, ...]
    summary: PrepareSummary


def prepare(manifest: Manifest, pinned: Sequence[Finding], undecodable: Mapping[str, str]) -> Prepared:
    """`manifest` without the images in `undecodable` (path to fault) and without unusable boxes."""
    images, findings = list[Image](), list(pinned)
    for image in manifest.images:
        if image.path in undecodable:
            fault = undecodable[image.path]
            findings.append(Finding(kind="unreadable_image", path=image.path, detail=fault, action="image quarantined"))
            continue
        boxes, faults = check_boxes(image.path, Size(image.width, image.height), image.boxes)
        images.append(replace(image, boxes=boxes))
        findings += faults
    dataset = replace(manifest, images=tuple(images))
    return Prepared(dataset, tuple(findings), _summary(manifest, dataset, findings))


def require_usable(prepared: Prepared, max_quarantined_fraction: float) -> None:
    """Raises DataError when too much is broken, or when a split or all boxes are gone."""
    summary = prepared.summary
    worst = ", ".join(f"{number} {kind}" for kind, number in summary.findings.items())
    if summary.broken_fraction > max_quarantined_fraction:
        raise DataError(
            f"{summary.broken_fraction:.1%} of the images are broken, at most {max_quarantined_fraction:.1%} are allowed "
            f"(params prepare.max_quarantined_fraction): {worst}; {_first_broken(prepared)}; repair the data or raise the limit"
        )
    if not any(summary.boxes.values()):
        raise DataError(f"no usable box is left in {sum(summary.images.values())} images: {worst or 'none was labelled'}")
    empty = [split for split in SPLITS if summary.images[split] == 0]
    if empty:
        raise DataError(f"no usable image is left in {' and '.join(empty)}: {worst or 'none was pinned'}; repair the data")


def _summary(manifest: Manifest, dataset: Manifest, findings: Sequence[Finding]) -> PrepareSummary:
    quarantined = {f.path for f in findings if f.action == "image quarantined"}
    broken = quarantined | {f.path for f in findings if f.kind in _LOST and f.action != "clipped"}
    num_read = len({image.path for image in manifest.images} | quarantined)
    actions, kinds = Counter(f.action for f in findings), Counter(f.kind for f in findings)
    return PrepareSummary(
        dataset_version=manifest.version(),
        split_rule=manifest.split_rule,
        images=dataset.num_images(),
        boxes=dataset.num_boxes(),
        quarantined_images=len(quarantined),
        quarantined_boxes=actions["box quarantined"],
        clipped_boxes=actions["clipped"],
        broken_fraction=len(broken) / num_read if num_read else 1.0,
        findings=dict(sorted(kinds.items())),
    )


def _first_broken(prepared: Prepared) -> str:
    first = next(f for f in prepared.findings if f.action == "image quarantined" or f.kind in _LOST)
    return f"first: {first.path}: {first.detail}"
