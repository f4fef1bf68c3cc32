"""What a training is: everything that decides its result. A state is gone on from only under the identity it was made under,
and where that differs, each difference is named in words.
"""

from collections.abc import Iterator, Mapping

from nightowl.errors import CheckpointError
from nightowl.files import canonical_json, sha256_bytes
from nightowl.records import Record

_SHORT = 12


class Identity(Record):
    """`params` by dotted path, as JSON text; `base` in words and digests; `code` maps each source file to its SHA-256, and
    `libraries` each distribution to its version."""

    dataset_sha256: str
    params: dict[str, str]
    base: dict[str, str]
    code: dict[str, str]
    libraries: dict[str, str]

    def key(self) -> str:
        """SHA-256 over all of it: the name of the training's checkpoints."""
        return sha256_bytes(canonical_json(self.model_dump(mode="json")).encode())


def flat(values: Mapping[str, object], path: str = "") -> dict[str, str]:
    """The leaves of nested mappings as `{"train.lr0": "0.01"}`, each as canonical JSON."""
    leaves: dict[str, str] = {}
    for name, value in values.items():
        here = f"{path}.{name}" if path else name
        leaves |= flat(value, here) if isinstance(value, Mapping) and value else {here: canonical_json(value)}
    return leaves


def differences(before: Identity, now: Identity) -> list[str]:
    """What differs between the identity of a state and the one in force, a phrase each; empty when they are the same."""
    found = []
    if before.dataset_sha256 != now.dataset_sha256:
        found.append(f"the data was {before.dataset_sha256[:_SHORT]}…, is {now.dataset_sha256[:_SHORT]}…")
    found += _changes("", before.params, now.params)
    found += _changes("base weights: ", before.base, now.base)
    found += _changes("", before.libraries, now.libraries)
    changed = [name for name, _, _ in _differing(before.code, now.code)]
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        found.append(f"the training code changed ({', '.join(changed[:3])}{more})")
    return found


def require_same(before: Identity, now: Identity, where: str) -> None:
    """Raises CheckpointError naming every difference when a state of `before` is to be gone on from under `now`."""
    found = differences(before, now)
    if found:
        raise CheckpointError(
            f"{where}: checkpoints of another training: {'; '.join(found)}; go on with what it was begun with, or train anew"
        )


def _changes(what: str, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [f"{what}{name} was {was}, is {is_}" for name, was, is_ in _differing(before, now)]


def _differing(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name in sorted(before.keys() | now.keys()):
        was, is_ = before.get(name, "absent"), now.get(name, "absent")
        if was != is_:
            yield name, was if len(was) < 64 else f"{was[:_SHORT]}…", is_ if len(is_) < 64 else f"{is_[:_SHORT]}…"
