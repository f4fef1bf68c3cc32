"""Parts of the test images that are measured on their own: a lot, a camera, the golden set.

Pure: from the images and what was pinned of them to named subsets. A rule of params gives one slice for each value that it
finds, called `NAME=VALUE`; a pattern without a group gives one, called NAME, of the images that it matches. Slices may overlap,
and an image without a value is in none of its rule's.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nightowl.data.manifest import Image
from nightowl.errors import DataError
from nightowl.params import SliceRule
from nightowl.records import Record

GOLDEN = "golden"
MOST_SLICES = 100  # of so many none could be shown to be worse; they are groups, not slices


class SliceFacts(Record):
    """What was pinned of the images beyond the manifest: the values of each rule's column by path; the golden digests."""

    columns: dict[str, dict[str, str]] = Field(default_factory=dict)
    golden: tuple[str, ...] = ()


class Slice(Record):
    """A named part of the test images, by their paths."""

    name: str
    images: tuple[str, ...]


class Slices(Record):
    slices: tuple[Slice, ...]


def slices_of(images: Sequence[Image], rules: Sequence[SliceRule], facts: SliceFacts) -> tuple[Slice, ...]:
    """The slices of `images` that are not empty, in the order of the rules, values in order; the golden set last.

    Raises:
        DataError: when a rule's column was not pinned, two slices have one name, or there are too many of them.
    """
    named = [each for rule in rules for each in _by_rule(images, rule, facts)]
    golden = tuple(image.path for image in images if image.sha256 in set(facts.golden))
    slices = (*named, *([Slice(name=GOLDEN, images=golden)] if golden else []))
    names = [each.name for each in slices]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"params evaluate.slices: two slices are called {twice[0]}; give each rule a name of its own")
    if len(slices) > MOST_SLICES:
        raise DataError(
            f"params evaluate.slices: {len(slices)} slices of {len(images)} images; at most {MOST_SLICES} can be judged "
            "on their own; for lots that only belong together set gate.group_pattern"
        )
    return slices


def members(paths: Sequence[str], one: Slice) -> NDArray[np.bool_]:
    """Which of `paths` (I,) are in the slice."""
    inside = set(one.images)
    return np.array([path in inside for path in paths], np.bool_)


def read_slice_facts(path: Path) -> SliceFacts:
    """What was pinned, nothing where the file is absent. Raises DataError when it is not such a record."""
    try:
        return SliceFacts.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return SliceFacts()
    except ValueError as error:
        raise DataError(f"{path}: not the pinned values of slices ({error}); pin the inputs again") from error


def _by_rule(images: Sequence[Image], rule: SliceRule, facts: SliceFacts) -> list[Slice]:
    values = _values(images, rule, facts)
    if rule.pattern is not None and not re.compile(rule.pattern).groups:
        return [Slice(name=rule.name, images=tuple(values))] if values else []
    return [
        Slice(name=f"{rule.name}={value}", images=tuple(path for path, own in values.items() if own == value))
        for value in sorted(set(values.values()))
    ]


def _values(images: Sequence[Image], rule: SliceRule, facts: SliceFacts) -> Mapping[str, str]:
    """The value of each image that has one."""
    if rule.pattern is not None:
        found = {image.path: re.search(rule.pattern, image.path) for image in images}
        return {path: match.group(match.re.groups and 1) or "" for path, match in found.items() if match}
    if rule.name not in facts.columns:
        raise DataError(
            f"params evaluate.slices: {rule.name}: column {rule.column} of {rule.table} is not pinned; pin the inputs again"
        )
    column = facts.columns[rule.name]
    return {image.path: column[image.path] for image in images if column.get(image.path)}
