"""The usable part of a pinned data set: audited, without what policies quarantine, with every finding and counts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict

from nightowl.audit_params import AuditParams
from nightowl.data.audit import Audit, rows_of, with_policies
from nightowl.data.balance import check_balance, drift_findings
from nightowl.data.check import check_boxes
from nightowl.data.drift import judge_drift
from nightowl.data.duplicates import check_duplicates
from nightowl.data.figures import DatasetFigures, figures_of
from nightowl.data.findings import Finding, Kind
from nightowl.data.golden import GoldenImage, golden_paths, missing_golden
from nightowl.data.image_checks import check_storage
from nightowl.data.images import Size
from nightowl.data.look import Look
from nightowl.data.manifest import SPLITS, Image, Manifest, Split
from nightowl.data.names import check_names
from nightowl.errors import DataError

# Labels of an object that is somewhere, nobody knows where: the whole image goes, or the object would be trained as background.
_OBJECT_SOMEWHERE = ("unparsable_label", "inverted_box")
# A label that is gone counts as a broken image.
_LOST = ("unparsable_label", "unknown_class", "zero_area_box", "inverted_box", "out_of_frame_box")
_BROKEN = ("unreadable_image", *_LOST)


class PrepareSummary(BaseModel):
    """Counts of one prepared data set. `broken_fraction`: images unreadable, or with a label lost, of all that were read."""

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
    """The usable data set, all findings (pinned ones first), their audit, and the counts. `barred` are the contents that may
    not be trained on: golden images and their copies."""

    dataset: Manifest
    barred: tuple[GoldenImage, ...]
    findings: tuple[Finding, ...]
    audit: Audit
    summary: PrepareSummary


@dataclass(frozen=True, slots=True)
class Beside:
    """What is pinned beside the data: the golden images, and the figures of the champion's data."""

    golden: tuple[GoldenImage, ...] = ()
    previous: DatasetFigures | None = None


def prepare(
    manifest: Manifest,
    pinned: Sequence[Finding],
    looks: Mapping[str, Look | str],
    params: AuditParams | None = None,
    beside: Beside | None = None,
) -> Prepared:
    """`manifest` without unusable boxes and without the images that do not decode or that a policy quarantines.

    `pinned` are the findings of reading the source; `looks` has each image's look by path, or why it does not decode.
    """
    params, beside = params or AuditParams(), beside or Beside()
    images, findings = _checked(manifest, looks)
    golden = golden_paths(manifest, beside.golden)
    findings += check_storage(images, looks)
    findings += check_names([image.path for image in manifest.images])
    findings += check_duplicates(images, looks, golden, params.near_duplicates)
    findings = with_policies(_with_whole_images([*pinned, *findings]), params)
    gone = {finding.path for finding in findings if finding.action == "image quarantined"}
    dataset = replace(manifest, images=tuple(image for image in images if image.path not in gone))
    drift = judge_drift(beside.previous, figures_of(manifest), params.max_psi, params.min_drift_boxes)
    findings += [*check_balance(dataset, params.max_class_ratio), *drift_findings(drift)]
    findings += _golden_gone(manifest, dataset, beside.golden)
    audit = Audit(
        dataset_version=manifest.version(),
        num_images=_num_read(manifest, findings),
        compared_with=beside.previous.dataset_version if beside.previous else None,
        rows=rows_of(findings, _num_read(manifest, findings), params),
        drift=drift,
    )
    barred = _barred(manifest, beside.golden, findings)
    return Prepared(dataset, barred, tuple(findings), audit, _summary(manifest, dataset, findings))


def require_usable(prepared: Prepared, max_quarantined_fraction: float) -> None:
    """Raises DataError when the audit fails, too much is broken, or a split or all boxes are gone."""
    summary = prepared.summary
    if summary.broken_fraction > max_quarantined_fraction:
        broken = _broken(prepared.findings)
        raise DataError(
            f"{summary.broken_fraction:.1%} of the images ({len(broken)} of {prepared.audit.num_images}) cannot be read or "
            f"lost a label, at most {max_quarantined_fraction:.1%} are allowed (params prepare.max_quarantined_fraction): "
            f"{_counted(broken.values())}; {_first(prepared, _BROKEN)}; repair the data or raise the limit"
        )
    for row in prepared.audit.failing:
        raise DataError(
            f"the audit stops here: {row.num_findings} {row.kind}: {row.fails}; {_first(prepared, (row.kind,))}; "
            "`nightowl data audit` shows all of them"
        )
    worst = _counted(finding.kind for finding in prepared.findings if finding.action != "kept")
    if not any(summary.boxes.values()):
        raise DataError(f"no usable box is left in {sum(summary.images.values())} images: {worst or 'none was labelled'}")
    empty = [split for split in SPLITS if summary.images[split] == 0]
    if empty:
        raise DataError(f"no usable image is left in {' and '.join(empty)}: {worst or 'none was pinned'}; repair the data")


def _checked(manifest: Manifest, looks: Mapping[str, Look | str]) -> tuple[list[Image], list[Finding]]:
    """The images that decode, with the boxes that can be used."""
    images, findings = list[Image](), list[Finding]()
    for image in manifest.images:
        look = looks.get(image.path)
        if isinstance(look, str):
            findings.append(Finding(kind="unreadable_image", path=image.path, detail=look, action="image quarantined"))
            continue
        boxes, faults = check_boxes(image.path, Size(image.width, image.height), image.boxes, manifest.classes)
        images.append(replace(image, boxes=boxes))
        findings += faults
    return images, findings


def _with_whole_images(findings: Sequence[Finding]) -> list[Finding]:
    """`findings`, where the loss of a label that stood for an object somewhere is that of its image."""
    return [
        finding.model_copy(update={"action": "image quarantined"}) if finding.kind in _OBJECT_SOMEWHERE else finding
        for finding in findings
    ]


def _barred(manifest: Manifest, golden: Sequence[GoldenImage], findings: Sequence[Finding]) -> tuple[GoldenImage, ...]:
    copies = {finding.path for finding in findings if finding.kind == "golden_duplicate"}
    found = {image.sha256: image.path for image in manifest.images if image.path in copies} | dict(golden)
    return tuple(GoldenImage(*item) for item in found.items())


def _golden_gone(manifest: Manifest, dataset: Manifest, golden: Sequence[GoldenImage]) -> list[Finding]:
    """Golden images that were pinned and are quarantined; those that were never there are among the pinned findings."""
    before = {finding.path for finding in missing_golden(manifest, golden)}
    said = {"detail": "golden, but quarantined"}
    return [f.model_copy(update=said) for f in missing_golden(dataset, golden) if f.path not in before]


def _num_read(manifest: Manifest, findings: Sequence[Finding]) -> int:
    return len({image.path for image in manifest.images} | {f.path for f in findings if f.action == "image quarantined"})


def _summary(manifest: Manifest, dataset: Manifest, findings: Sequence[Finding]) -> PrepareSummary:
    broken = _broken(findings)
    num_read = _num_read(manifest, findings)
    actions, kinds = Counter(f.action for f in findings), Counter(f.kind for f in findings)
    return PrepareSummary(
        dataset_version=manifest.version(),
        split_rule=manifest.split_rule,
        images=dataset.num_images(),
        boxes=dataset.num_boxes(),
        quarantined_images=len({f.path for f in findings if f.action == "image quarantined"}),
        quarantined_boxes=actions["box quarantined"],
        clipped_boxes=actions["clipped"],
        broken_fraction=len(broken) / num_read if num_read else 1.0,
        findings=dict(sorted(kinds.items())),
    )


def _broken(findings: Sequence[Finding]) -> dict[str, Kind]:
    """The broken images, each under the gravest kind of what is wrong with it, so that these counts add up."""
    faults = [f for f in findings if f.kind in _BROKEN and f.action != "clipped"]
    gravest_last = sorted(faults, key=lambda finding: -_BROKEN.index(finding.kind))
    return {finding.path: finding.kind for finding in gravest_last}


def _counted(kinds: Iterable[Kind]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(Counter(kinds).items()))


def _first(prepared: Prepared, kinds: Sequence[str]) -> str:
    first = next(f for f in prepared.findings if f.kind in kinds)
    return f"first: {first.path}: {first.detail}"
