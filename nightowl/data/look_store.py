"""Looks kept by content digest, so that an image is decoded once in its life, whichever detector or night it belongs to.

A folder of parquet files, each published by one rename and never changed; every pass that meets new images adds one. Two passes
at once may add the same image twice, which does no harm. A file that is damaged counts as empty and costs only time. What a
decoder refuses depends on its version, so each version of Pillow has its own folder.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import PIL
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nightowl.data.images import Storage
from nightowl.data.look import Look
from nightowl.files import write_atomic

FORMAT = 1
MAX_FILES = 16  # more are written together into one
_SCHEMA = pa.schema(
    [
        ("sha256", pa.string()),
        ("fault", pa.string()),
        ("format", pa.string()),
        ("mode", pa.string()),
        ("bits", pa.int8()),
        ("has_alpha", pa.bool_()),
        ("orientation", pa.int32()),
        ("hash", pa.uint64()),
        ("thumbnail", pa.binary()),
    ]
)

Known = dict[str, Look | str]


@dataclass(frozen=True)
class LookStore:
    """The store below `root`, which is made when something is first added; without a root nothing is kept."""

    root: Path | None

    @property
    def folder(self) -> Path | None:
        return None if self.root is None else self.root / f"looks-{FORMAT}-pillow-{PIL.__version__}"

    def load(self, wanted: Collection[str]) -> Known:
        """What is known of the images of these digests: their look, or why they do not decode."""
        digests = pa.array(sorted(wanted), pa.string())
        known: Known = {}
        for _, table in self._tables():
            for row in table.filter(pc.is_in(table["sha256"], digests)).to_pylist():
                known[row["sha256"]] = _look(row)
        return known

    def add(self, looks: Mapping[str, Look | str]) -> None:
        """Keep these; what is there stays."""
        if self.folder is None or not looks:
            return
        self._write(pa.Table.from_pylist([_row(sha256, look) for sha256, look in looks.items()], _SCHEMA))
        self._merge()

    def _write(self, table: pa.Table) -> None:
        assert self.folder is not None
        buffer = pa.BufferOutputStream()
        pq.write_table(table, buffer, compression="zstd")
        write_atomic(self.folder / f"{uuid4().hex}.parquet", buffer.getvalue().to_pybytes())

    def _tables(self) -> Iterator[tuple[Path, pa.Table]]:
        if self.folder is None:
            return
        for path in sorted(self.folder.glob("*.parquet")):
            try:
                yield path, pq.read_table(path, schema=_SCHEMA)
            except (OSError, pa.ArrowException):
                continue  # damaged, or merged by another process meanwhile

    def _merge(self) -> None:
        """Many small files as one: written first, so that whoever reads meanwhile finds everything in one or the other."""
        assert self.folder is not None
        if len(list(self.folder.glob("*.parquet"))) <= MAX_FILES:
            return
        tables = list(self._tables())
        self._write(pa.concat_tables([table for _, table in tables]))
        for path, _ in tables:
            path.unlink(missing_ok=True)


def _row(sha256: str, look: Look | str) -> dict[str, object]:
    if isinstance(look, str):
        return {"sha256": sha256, "fault": look}
    return {"sha256": sha256, "hash": look.hash, "thumbnail": look.thumbnail, **look.storage._asdict()}


def _look(row: dict[str, object]) -> Look | str:
    if row["fault"] is not None:
        return str(row["fault"])
    storage = Storage(**{name: row[name] for name in Storage._fields})  # type: ignore[arg-type]
    return Look(storage, row["hash"], row["thumbnail"])  # type: ignore[arg-type]
