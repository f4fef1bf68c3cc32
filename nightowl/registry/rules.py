"""Which registered version may become champion. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from nightowl.registry.version import VersionInfo


@dataclass(frozen=True)
class Refusal:
    """Why a version may not be promoted. `may_be_forced` says whether a person may decide otherwise."""

    reason: str
    may_be_forced: bool


def refusal_to_promote(info: VersionInfo, others: Sequence[VersionInfo], as_judged: bool = False) -> Refusal | None:
    """Why `info` may not become champion, or None when it may (or is). `others` are all versions of the detector.

    `as_judged` is for a night: the champion must still be the one that the verdict is about. A person who promotes by hand
    means what they see.
    """
    record = info.record
    if info.champion:
        return None
    if record.dirty:
        return Refusal("it was made from a tree with uncommitted changes, which nobody could make again", may_be_forced=False)
    if record.verdict != "promote":
        why = f": {record.verdict_sentence}" if record.verdict_sentence else ""
        return Refusal(f"the gate's verdict on it is `{record.verdict}`{why}", may_be_forced=True)
    if not record.parity_passed:
        return Refusal("its exported model does not follow the trained one (parity failed)", may_be_forced=True)
    back = next((o.version for o in others if o.taken_back and o.record.weights_sha256 == record.weights_sha256), None)
    if back is not None:
        same = "it" if back == info.version else f"its weights are those of version {back}, which"
        return Refusal(f"{same} was taken back", may_be_forced=True)
    standing = next((o.version for o in others if o.champion), None)
    if as_judged and standing != record.champion_version:
        was, now = _named(record.champion_version), _named(standing)
        return Refusal(f"it was judged against {was}, and now there is {now}", may_be_forced=True)
    return None


def _named(version: str | None) -> str:
    return "no champion" if version is None else f"version {version} as champion"
