"""What the labels as a whole say: classes without boxes, imbalance, no background, and drift. Pure."""

from collections import Counter
from collections.abc import Iterable

from nightowl.data.drift import Drift
from nightowl.data.findings import WHOLE, Finding, Kind
from nightowl.data.manifest import SPLITS, Manifest

_DRIFT_KINDS: dict[str, Kind] = {"classes": "class_drift", "box sizes": "box_size_drift"}


def check_balance(dataset: Manifest, max_class_ratio: float) -> list[Finding]:
    """Findings on the boxes and images of a data set as a whole; crowds are not counted."""
    return [*_without_boxes(dataset), *_imbalance(dataset, max_class_ratio), *_no_background(dataset)]


def drift_findings(drifts: Iterable[Drift]) -> list[Finding]:
    """A finding for each comparison that shows a drift."""
    return [_whole(_DRIFT_KINDS[drift.what], f"{drift.what}: {drift.sentence}") for drift in drifts if drift.drifted]


def _without_boxes(dataset: Manifest) -> list[Finding]:
    counts = Counter((i.split, box.class_id) for i in dataset.images for box in i.boxes if not box.ignore)
    findings = []
    for index, name in enumerate(dataset.classes):
        lacking = [split for split in SPLITS if not counts[split, index]]
        if lacking:
            findings.append(_whole("class_without_boxes", f"class {name!r} has no box in {', '.join(lacking)}"))
    return findings


def _imbalance(dataset: Manifest, max_ratio: float) -> list[Finding]:
    counts = {name: number for name, number in dataset.num_boxes().items() if number}
    if not counts:
        return []
    most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    if counts[most] <= max_ratio * counts[least]:
        return []
    return [
        _whole(
            "class_imbalance", f"{counts[most]} boxes of {most!r}, {counts[least]} of {least!r}: more than {max_ratio:g} to 1"
        )
    ]


def _no_background(dataset: Manifest) -> list[Finding]:
    if not dataset.images or any(not image.boxes for image in dataset.images):
        return []
    detail = f"each of {len(dataset.images)} images has an object: what a model does where there is none is not seen"
    return [_whole("no_background_images", detail)]


def _whole(kind: Kind, detail: str) -> Finding:
    return Finding(kind=kind, path=WHOLE, detail=detail, action="kept")
