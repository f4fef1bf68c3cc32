"""Which class names a data set has, in which order: the layout's own, or those of `data.classes`, which then decide."""

import re
from collections.abc import Sequence

from nightowl.errors import DataError

_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def check_names(names: Sequence[object], where: str) -> tuple[str, ...]:
    """`names` as distinct texts. Raises DataError on an empty list, an empty name, one that is no text, or is there twice."""
    if not names:
        raise DataError(f"{where}: no class names; expected at least one")
    odd = [name for name in names if not isinstance(name, str | int | float) or _CONTROL.search(str(name).strip())]
    if odd:
        raise DataError(f"{where}: expected a word or a number for a class name, found {odd[0]!r}")
    texts = tuple(str(name).strip() for name in names)
    if "" in texts:
        raise DataError(f"{where}: class {texts.index('')} has an empty name")
    twice = sorted({name for name in texts if texts.count(name) > 1})
    if twice:
        raise DataError(f"{where}: class names must differ, but {', '.join(map(repr, twice))} occurs more than once")
    return texts


def class_order(found: Sequence[str], used: set[str], wanted: tuple[str, ...] | None, where: str) -> tuple[str, ...]:
    """The classes in order: `wanted` (params data.classes) where given, else `found`.

    Raises:
        DataError: when a name that boxes use is not among `wanted`.
    """
    if wanted is None:
        return tuple(found)
    classes = check_names(wanted, "params data.classes")
    unknown = sorted(used - set(classes))
    if unknown:
        raise DataError(
            f"{where}: boxes of {', '.join(map(repr, unknown))}, which params data.classes does not name "
            f"({', '.join(classes)}); add the name there or correct the labels"
        )
    return classes
