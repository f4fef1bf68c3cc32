"""Values of images from tables beside the data, read when the inputs are pinned."""

import csv
from collections.abc import Sequence
from pathlib import Path

from nightowl.data.formats.listing import content_of, inside, read_text
from nightowl.errors import DataError
from nightowl.params import SliceRule

IMAGE = "image"


def read_columns(root: Path, rules: Sequence[SliceRule], paths: Sequence[str]) -> dict[str, dict[str, str]]:
    """For each rule with a column, by its name: the value of each of `paths` that has a row and a value in it.

    Raises:
        DataError: when a table is absent or lacks a column, gives an image two values, or names none of the images.
    """
    return {rule.name: _column(root, rule, paths) for rule in rules if rule.column is not None and rule.table is not None}


def _column(root: Path, rule: SliceRule, paths: Sequence[str]) -> dict[str, str]:
    file = inside(root, root, rule.table or "")
    if file is None or not file.is_file():
        raise DataError(
            f"params evaluate.slices: {rule.name}: {rule.table}: no such file inside {root}; it holds {content_of(root)}"
        )
    reader = csv.DictReader(read_text(root, file).splitlines())
    missing = [name for name in (IMAGE, rule.column or "") if name not in (reader.fieldnames or [])]
    if missing:
        raise DataError(f"{file}: no column {' or '.join(missing)}; it has {', '.join(reader.fieldnames or []) or 'none'}")
    values: dict[str, str] = {}
    for row in reader:
        name, value = (row[IMAGE] or "").strip(), (row[rule.column or ""] or "").strip()
        if values.setdefault(name, value) != value:
            raise DataError(f"{file} line {reader.line_num}: {name} has {rule.column} {values[name]} and {value}; keep one row")
    known = {path: values[path] for path in paths if values.get(path)}
    if not known:
        raise DataError(f"{file}: its column {IMAGE} names none of the {len(paths)} images; expected paths such as {paths[0]}")
    return known
