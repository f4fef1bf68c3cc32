"""The night key: equal keys mean that a night would make the same model again.

It covers everything that decides the candidate and nothing that judges it: data, params, base weights, and the code that the
stages depend on. The champion is left out, or a promotion would be a reason to train again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from nightowl.files import canonical_json, sha256_bytes


@dataclass(frozen=True)
class PastNight:
    """What the registry remembers of a night: its key, the champion it was judged against, and whether it was taken back."""

    version: str
    night_key: str
    judged_against: str | None
    taken_back: bool


@dataclass(frozen=True)
class Parts:
    """What a night's inputs are, but for its code: digests of the data and the params, and the base weights, which are a digest
    or an architecture."""

    dataset_version: str
    params_sha256: str
    base: str


def night_key(parts: Parts, code: str) -> str:
    """SHA-256 over all of them; `code` is any text that changes with the code."""
    named = {"dataset": parts.dataset_version, "params": parts.params_sha256, "base": parts.base}
    return sha256_bytes(canonical_json({**named, "code": sha256_bytes(code.encode())}).encode())


@dataclass(frozen=True)
class Known:
    """What tonight's inputs made before: why the night need not run, in a sentence, and whether that is the champion."""

    sentence: str
    is_champion: bool


def nothing_new(key: str, champion: str | None, past: Iterable[PastNight]) -> Known | None:
    """What is known of tonight's inputs already, or None when the night must run.

    The same inputs made the champion; or they made a version that was taken back, which must not return by itself; or they
    made one that was refused against this very champion. A refusal against another champion is judged again.
    """
    same = [night for night in past if night.night_key == key]
    for night in same:
        if night.version == champion:
            return Known(f"nothing new since version {champion} was made: the champion stands", is_champion=True)
    for night in same:
        if night.taken_back:
            return Known(f"nothing new since version {night.version}, which was taken back: {_standing(champion)}", False)
        if night.judged_against == champion:
            return Known(f"nothing new since version {night.version}, which was not promoted: {_standing(champion)}", False)
    return None


def what_is_new(version: str, then: Parts, now: Parts, same_key: bool) -> str:
    """Why a night runs though a `version` was made `then`: what has changed since; the code, if nothing else has."""
    if same_key:
        return f"the inputs are those of version {version}, which is to be judged anew"
    names = {"dataset_version": "data", "params_sha256": "params", "base": "base weights"}
    changed = [name for part, name in names.items() if getattr(then, part) != getattr(now, part)]
    return f"new since version {version}: {', '.join(changed) or 'code or libraries of the stages'}"


def _standing(champion: str | None) -> str:
    return f"the champion, version {champion}, stands" if champion else "there is still no champion"
