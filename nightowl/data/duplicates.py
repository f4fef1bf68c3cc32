"""Images that are there more than once: by content, or as nearly the same photograph. Pure.

Of two, the stronger role stays: a golden image before any other of test, test before val, val before train. So a leak is mended
by taking the copy out of train or val; what is judged on never changes for it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from nightowl.audit_params import NearDuplicateParams
from nightowl.data.findings import WHOLE, Finding, Kind
from nightowl.data.look import Look
from nightowl.data.manifest import Image, Split
from nightowl.data.near_duplicates import CROWD, NearPairs, find_near

_ROLES: tuple[Split, ...] = ("test", "val", "train")


def check_duplicates(
    images: Sequence[Image], looks: Mapping[str, Look | str], golden: frozenset[str], params: NearDuplicateParams
) -> list[Finding]:
    """A finding for each copy, exact or near; its `path` is the weaker role, its `other` the image that it repeats.

    `golden` are paths. An image without a look is compared by content alone.
    """
    contents: dict[str, list[Image]] = defaultdict(list)
    for image in sorted(images, key=lambda image: _strength(image, golden)):
        contents[image.sha256].append(image)
    groups = list(contents.values())
    return [*_same_content(groups, golden), *_near(groups, looks, golden, params)]


def _strength(image: Image, golden: frozenset[str]) -> tuple[bool, int, str]:
    return image.path not in golden, _ROLES.index(image.split), image.path


def _same_content(groups: Sequence[Sequence[Image]], golden: frozenset[str]) -> list[Finding]:
    findings = []
    for kept, *others in groups:
        for other in others:
            where = f" of {kept.split}, while it is in {other.split}" if other.split != kept.split else ""
            kinds: tuple[Kind, Kind] = ("same_content", "same_content_across_splits")
            findings.append(_copy(kinds, other, kept, golden, f"same content as {kept.path}{where}"))
    return findings


def _near(
    groups: Sequence[Sequence[Image]], looks: Mapping[str, Look | str], golden: frozenset[str], params: NearDuplicateParams
) -> list[Finding]:
    seen = [(group, look) for group in groups if isinstance(look := looks.get(group[0].path), Look)]
    hashes = np.array([look.hash for _, look in seen], np.uint64)
    thumbnails = np.array([np.frombuffer(look.thumbnail, np.uint8) for _, look in seen], np.uint8)
    found = find_near(hashes, thumbnails, params.hash_bits, params.max_difference)
    findings = []
    for (i, j), difference, bits in zip(found.pairs.tolist(), found.differences.tolist(), found.bits.tolist(), strict=True):
        stronger, weaker = sorted((seen[i][0], seen[j][0]), key=lambda group: _strength(group[0], golden))
        kept = stronger[0]
        for other in weaker:
            where = f" of {kept.split}, while it is in {other.split}" if other.split != kept.split else ""
            detail = f"looks like {kept.path}{where}: {bits} of 64 bits differ, thumbnails by {difference:.4f}"
            findings.append(_copy(("near_duplicate", "near_duplicate_across_splits"), other, kept, golden, detail))
    return [*findings, *_alike([group[0] for group, _ in seen], found, params)]


def _copy(kinds: tuple[Kind, Kind], other: Image, kept: Image, golden: frozenset[str], detail: str) -> Finding:
    """`kinds`: within a split, and across."""
    kind: Kind = kinds[other.split != kept.split]
    if kept.path in golden and other.split != "test":
        kind, detail = "golden_duplicate", f"{detail}, which is golden"
    return Finding(kind=kind, path=other.path, detail=detail, action="kept", other=kept.path)


def _alike(images: Sequence[Image], found: NearPairs, params: NearDuplicateParams) -> list[Finding]:
    """At most two findings: how many images of one split resemble those of another, and how far was searched."""
    findings = []
    across = [(images[i], images[j]) for i, j in found.alike.tolist() if images[i].split != images[j].split]
    if across:
        first, other = min(across, key=lambda pair: (pair[0].path, pair[1].path))
        counts = {split: len({image.path for pair in across for image in pair if image.split == split}) for split in _ROLES}
        said = ", ".join(f"{number} of {split}" for split, number in counts.items() if number)
        detail = (
            f"{said} look alike, each with {CROWD} or more others: one product or one scene. If they are of one lot or video, "
            "say so in data.split.group_pattern or group_column, or the test is easier than the line"
        )
        findings.append(Finding(kind="alike_across_splits", path=first.path, detail=detail, action="kept", other=other.path))
    if found.radius < params.hash_bits:
        said = f"to {found.radius} bits only" if found.radius >= 0 else "not at all"
        detail = (
            f"near duplicates were searched {said} (asked for {params.hash_bits}): too many images are alike to compare all"
        )
        findings.append(Finding(kind="alike_across_splits", path=WHOLE, detail=detail, action="kept"))
    return findings
