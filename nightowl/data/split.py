"""Splits taken by hash of a group, so that growing the data moves no image and a group is never torn apart.

A group's key is hashed to a number in [0, 1): below `test_fraction` it is test, in the next `val_fraction` val, above
train. The intervals are the same whichever splits are given, so a role that is taken later takes the same images.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from nightowl.data.manifest import SPLITS, Split
from nightowl.errors import DataError
from nightowl.params import SplitParams

_ROBOFLOW_COPY = re.compile(r"\.rf\.[0-9A-Za-z]+$")


def group_key(path: str, pattern: str | None) -> str | None:
    """What keeps images together: the pattern's first group (or whole match), None where it does not match.

    Without a pattern it is the path without suffix; the mark that Roboflow adds to augmented copies is cut off, so that the
    copies of one image stay together.
    """
    if pattern is None:
        return _ROBOFLOW_COPY.sub("", PurePosixPath(path).with_suffix("").as_posix())
    match = re.search(pattern, path)
    if match is None:
        return None
    return match.group(1) if match.re.groups else match.group(0)


def role(key: str, params: SplitParams) -> Split:
    """The split of a group: a function of its key and the two fractions, of nothing else."""
    place = int.from_bytes(hashlib.sha256(f"split:{key}".encode()).digest()[:8], "big") / 2**64
    if place < params.test_fraction:
        return "test"
    return "val" if place < params.test_fraction + params.val_fraction else "train"


def take_splits(
    given: Mapping[str, Split | None], params: SplitParams, groups: Mapping[str, str] | None = None
) -> tuple[dict[str, Split], str]:
    """The split of each path, and the rule in words. Splits that are given stay; the others are taken by hash from train.

    `groups` is the group of each path that a table says; without it the pattern of params decides.

    Raises:
        DataError: when val or test is given without train, a split would be empty, or the group pattern does not match.
    """
    present: set[Split] = {split for split in given.values() if split is not None}
    if present and "train" not in present:
        raise DataError(f"{' and '.join(sorted(present))} given, but no train split with images; nightowl trains on train")
    missing: list[Split] = [split for split in ("val", "test") if split not in present]
    taken: dict[str, Split] = {path: split or "train" for path, split in given.items()}
    divided = [path for path, split in taken.items() if split == "train"] if missing else []
    keys = _keys(divided, params) if groups is None else {path: groups[path] for path in divided}
    for path, key in keys.items():
        split = role(key, params)
        if split in missing:
            taken[path] = split
    _require_all(taken, keys, params)
    return taken, _rule(present, missing, params)


def _keys(paths: Iterable[str], params: SplitParams) -> dict[str, str]:
    keys = {path: group_key(path, params.group_pattern) for path in paths}
    unmatched = [path for path, key in keys.items() if key is None]
    if unmatched:
        raise DataError(
            f"params data.split.group_pattern: {params.group_pattern!r} does not match {len(unmatched)} of {len(keys)} paths, "
            f"first {unmatched[0]}; every image needs a group"
        )
    return {path: key for path, key in keys.items() if key is not None}


def _require_all(taken: Mapping[str, Split], keys: Mapping[str, str], params: SplitParams) -> None:
    empty = [split for split in SPLITS if split not in taken.values()]
    if empty:
        raise DataError(
            f"too few images to divide: {' and '.join(empty)} would be empty: {len(keys)} images in {len(set(keys.values()))} "
            f"groups, data.split.val_fraction {params.val_fraction}, test_fraction {params.test_fraction}; "
            "add images, raise the fraction, or list the images of each split in params data.splits"
        )


def _rule(present: set[Split], missing: list[Split], params: SplitParams) -> str:
    if not missing:
        return "train, val and test as given"
    group = f"group {params.group_pattern}" if params.group_pattern else "path without suffix"
    if params.group_column:
        group = f"column {params.group_column} of {params.group_table}"
    fractions = {"val": params.val_fraction, "test": params.test_fraction}
    shares = " and ".join(f"{split} ({fractions[split]:.0%})" for split in missing)
    whence = " from train" if present else ""
    kept = f"{' and '.join(split for split in SPLITS if split in present)} as given; " if present else ""
    return f"{kept}{shares} taken{whence} by hash of the {group}"
