"""Which class names a data set has, in which order: the layout's own, or those of `data.classes`, which then decide.

A box of another name than those of `data.classes` is a finding in every layout, and what is done about it is a policy.
"""

import re
from collections.abc import Sequence

from nightowl.errors import DataError

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # ends of lines among them


def check_names(names: Sequence[object], where: str) -> tuple[str, ...]:
    """`names` as distinct texts. Raises DataError on an empty list, an empty name, one that is no text, or is there twice."""
    if not names:
        raise DataError(f"{where}: no class names; expected at least one")
    odd = [name for name in names if not isinstance(name, str | int | float) or has_control(str(name).strip())]
    if odd:
        raise DataError(f"{where}: expected a word or a number for a class name, found {odd[0]!r}")
    texts = tuple(str(name).strip() for name in names)
    if "" in texts:
        raise DataError(f"{where}: class {texts.index('')} has an empty name")
    twice = sorted({name for name in texts if texts.count(name) > 1})
    if twice:
        raise DataError(f"{where}: class names must differ, but {', '.join(map(repr, twice))} occurs more than once")
    return texts


def has_control(name: str) -> bool:
    """Does a name hold what no terminal, page or line of a file can show as one?"""
    return _CONTROL.search(name) is not None


def class_order(found: Sequence[str], wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    """The classes in order: `wanted` (params data.classes) where given, else `found`. Raises DataError as `check_names`."""
    return tuple(found) if wanted is None else check_names(wanted, "params data.classes")


def not_among(name: str, classes: Sequence[str]) -> str:
    """What is wrong with a box of `name`, which is none of the `classes` of params."""
    named = ", ".join(classes)
    return f"class {name!r}, which params data.classes does not name ({named}); add the name there or correct the label"
