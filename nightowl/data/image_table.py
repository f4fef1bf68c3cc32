"""Tables beside the data, CSV or parquet, with a row for an image: which lot it is of, which line it was taken on.

A row names its image by path inside the source, by file name, or by either without suffix. Read when the inputs are pinned.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nightowl.data.formats.listing import content_of, inside, names_of, read_text
from nightowl.errors import DataError
from nightowl.params import SliceRule, SplitParams

IMAGE = "image"


def read_groups(root: Path, params: SplitParams, paths: Iterable[str]) -> dict[str, str] | None:
    """The group of each of `paths` by `data.split.group_table`; None when params name no table.

    Raises:
        DataError: as `_values`, or when an image has no group.
    """
    if params.group_table is None or params.group_column is None:
        return None
    file = _table(root, params.group_table, "params data.split.group_table")
    wanted = list(paths)
    groups = _values(file, params.image_column, params.group_column, wanted)
    without = [path for path in wanted if path not in groups]
    if without:
        raise DataError(
            f"{file}: no {params.group_column} for {len(without)} of {len(wanted)} images, first {without[0]}; "
            f"every image needs a {params.group_column}"
        )
    return groups


def read_columns(root: Path, rules: Sequence[SliceRule], paths: Sequence[str]) -> dict[str, dict[str, str]]:
    """For each rule with a column, by its name: the value of each of `paths` that has a row and a value in it.

    Raises:
        DataError: as `_values`, or when a table names none of the images.
    """
    columns = {}
    for rule in rules:
        if rule.column is not None and rule.table is not None:
            file = _table(root, rule.table, f"params evaluate.slices: {rule.name}")
            columns[rule.name] = _values(file, IMAGE, rule.column, paths)
            if not columns[rule.name]:
                raise DataError(
                    f"{file}: its column {IMAGE} names none of the {len(paths)} images; expected paths such as {paths[0]}"
                )
    return columns


def _table(root: Path, name: str, where: str) -> Path:
    file = inside(root, root, name)
    if file is None or not file.is_file():
        raise DataError(f"{where}: {name}: no such file inside {root}; it holds {content_of(root)}")
    return file


def _values(file: Path, image_column: str, column: str, paths: Iterable[str]) -> dict[str, str]:
    """The value of each of `paths` that has one.

    Raises:
        DataError: when the table cannot be read, lacks a column, or gives an image two values.
    """
    by_name = _by_name(file, image_column, column)
    values: dict[str, str] = {}
    for path in paths:
        found = {by_name[name] for name in names_of(path) if name in by_name}
        if len(found) > 1:
            raise DataError(
                f"{file}: {path}: rows give it {column} {' and '.join(sorted(found))}; write the path inside the source"
            )
        if found:
            values[path] = found.pop()
    return values


def _by_name(file: Path, image_column: str, column: str) -> dict[str, str]:
    """The values by the names that rows give their images; rows without a value are left out."""
    columns = _columns(file)
    missing = [name for name in (image_column, column) if name not in columns]
    if missing:
        raise DataError(f"{file}: no column {' or '.join(missing)}; it has {', '.join(columns) or 'none'}")
    values: dict[str, str] = {}
    for written, value in zip(columns[image_column], columns[column], strict=True):
        name = written.replace("\\", "/").removeprefix("./")
        if not name and value:
            raise DataError(f"{file}: a row with {column} {value!r} and no {image_column}; fill it in")
        if value and values.setdefault(name, value) != value:
            raise DataError(f"{file}: {name} has {column} {values[name]} and {value}; keep one row")
    return values


def _columns(file: Path) -> Mapping[str, list[str]]:
    """Every column as trimmed texts. Raises DataError when the file is neither CSV nor parquet."""
    if file.suffix.lower() == ".parquet":
        try:
            table = pq.read_table(file)
            columns = {name: column.to_pylist() for name, column in zip(table.column_names, table.columns, strict=True)}
        except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
            raise DataError(f"{file}: not readable as parquet: {error}") from error
        return {name: ["" if value is None else str(value).strip() for value in values] for name, values in columns.items()}
    reader = csv.DictReader(io.StringIO(read_text(file.parent, file), newline=""))
    try:
        names = [name for name in reader.fieldnames or [] if name]
        rows = list(reader)
    except csv.Error as error:
        raise DataError(f"{file}: not readable as CSV: {error}") from error
    return {name: [(row[name] or "").strip() for row in rows] for name in names}
