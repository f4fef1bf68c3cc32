"""No split serves two roles: an image that several splits list keeps one of them, and that is said.

One folder named twice loses its second role, which will be taken by hash instead: val or test that equals train, test that
lies within val. Otherwise a shared image leaves train, so that nothing is judged on what it was fitted to, or leaves test for
val.
"""

from collections.abc import Sequence

from nightowl.data.findings import Finding
from nightowl.data.formats.listing import Labelled
from nightowl.data.manifest import Split

_TWICE: tuple[tuple[Split, Split], ...] = (("val", "train"), ("test", "train"), ("test", "val"))
_LEAVES: tuple[tuple[Split, Split], ...] = (("train", "val"), ("train", "test"), ("test", "val"))


def one_split_each(images: Sequence[Labelled]) -> tuple[list[Labelled], list[Finding]]:
    """`images` with each path once, and a finding for each role or image that was taken out of a split."""
    members: dict[Split, set[str]] = {"train": set(), "val": set(), "test": set()}
    for image in images:
        if image.split is not None:
            members[image.split].add(image.path)
    findings = _drop_roles(members) + _part_images(members)
    kept: dict[str, Labelled] = {}
    for image in images:
        if image.split is None or image.path in members[image.split]:
            kept.setdefault(image.path, image)
    return list(kept.values()), findings


def _drop_roles(members: dict[Split, set[str]]) -> list[Finding]:
    findings = []
    for second, first in _TWICE:
        shared = members[second]
        if shared and (shared == members[first] or (first == "val" and shared <= members[first])):
            detail = f"all {len(shared)} images of {second} are also in {first}: not used as {second}, which is taken by hash"
            findings.append(Finding(kind="split_overlap", path=min(shared), detail=detail, action="left out"))
            members[second] = set()
    return findings


def _part_images(members: dict[Split, set[str]]) -> list[Finding]:
    findings = []
    for loser, keeper in _LEAVES:
        shared = members[loser] & members[keeper]
        members[loser] -= shared
        detail = f"in {loser} and {keeper}: not used as {loser}"
        findings += [Finding(kind="split_overlap", path=path, detail=detail, action="left out") for path in sorted(shared)]
    return findings
