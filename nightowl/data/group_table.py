"""Groups from a table beside the data: which lot, video or customer each image belongs to."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nightowl.data.formats.listing import content_of, inside, names_of, read_text
from nightowl.errors import DataError
from nightowl.params import SplitParams


def read_groups(root: Path, params: SplitParams, paths: Iterable[str]) -> dict[str, str] | None:
    """The group of each of `paths` by `data.split.group_table`; None when params name no table.

    Raises:
        DataError: when the table cannot be read, lacks a column, names an image ambiguously or in two groups, or when an
            image has no row.
    """
    if params.group_table is None or params.group_column is None:
        return None
    file = inside(root, root, params.group_table)
    if file is None or not file.is_file():
        raise DataError(
            f"params data.split.group_table: {params.group_table}: no such file inside {root}; it holds {content_of(root)}"
        )
    by_name = _by_name(file, params)
    groups, without = dict[str, str](), list[str]()
    for path in paths:
        found = {by_name[name] for name in names_of(path) if name in by_name}
        if len(found) > 1:
            raise DataError(f"{file}: {path}: rows put it into {' and '.join(sorted(found))}; write the path inside the source")
        if found:
            groups[path] = found.pop()
        else:
            without.append(path)
    if without:
        raise DataError(
            f"{file}: no row for {len(without)} of {len(groups) + len(without)} images, first {without[0]}; "
            f"every image needs a {params.group_column}"
        )
    return groups


def _by_name(file: Path, params: SplitParams) -> dict[str, str]:
    groups: dict[str, str] = {}
    for name, group in _rows(file, params):
        if not name or not group:
            raise DataError(
                f"{file}: a row with {params.image_column} {name!r} and {params.group_column} {group!r}; fill in both"
            )
        if groups.setdefault(name, group) != group:
            raise DataError(f"{file}: {name} is in {groups[name]} and in {group}; keep one row")
    return groups


def _rows(file: Path, params: SplitParams) -> list[tuple[str, str]]:
    columns = _columns(file)
    wanted = (params.image_column, params.group_column or "")
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise DataError(f"{file}: no column {' or '.join(missing)}; it has {', '.join(columns) or 'none'}")
    names, groups = (columns[name] for name in wanted)
    return [(name.replace("\\", "/").removeprefix("./"), group) for name, group in zip(names, groups, strict=True)]


def _columns(file: Path) -> Mapping[str, list[str]]:
    """Every column as trimmed texts. Raises DataError when the file is neither CSV nor parquet."""
    if file.suffix.lower() == ".parquet":
        try:
            table = pq.read_table(file)
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{file}: not readable as parquet: {error}") from error
        return {
            name: ["" if value is None else str(value).strip() for value in table[name].to_pylist()]
            for name in table.column_names
        }
    rows = list(csv.DictReader(read_text(file.parent, file).splitlines()))
    names = [name for name in (rows[0] if rows else {}) if name is not None]
    return {name: [(row[name] or "").strip() for row in rows] for name in names}
