"""Rows as Parquet files, which other tools read as well."""

from collections.abc import Sequence
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nightowl.data.cache.entries import ROW, Rows


def to_parquet(rows: Rows, shards: Sequence[str]) -> bytes:
    """A Parquet file of the rows; the column `shard` has names."""
    columns = {name: pa.array(rows[name]) for name in ROW.names or () if name not in ("sha256", "shard")}
    digests = pa.array([digest.decode() for digest in rows["sha256"].tolist()], pa.string())
    names = pa.DictionaryArray.from_arrays(pa.array(rows["shard"]), pa.array(list(shards), pa.string()))
    buffer = BytesIO()
    pq.write_table(pa.table({"sha256": digests, "shard": names, **columns}), buffer, compression="zstd")
    return buffer.getvalue()


def from_parquet(content: bytes) -> tuple[Rows, list[str]]:
    """Rows and the names of the shards that they count. Raises pa.ArrowException, KeyError, ValueError."""
    table = pq.ParquetFile(BytesIO(content)).read(use_threads=False)
    rows = np.zeros(len(table), ROW)
    rows["sha256"] = table["sha256"].to_pylist()
    encoded = table["shard"].combine_chunks().dictionary_encode()
    rows["shard"] = encoded.indices.to_pylist()
    for name in ROW.names or ():
        if name not in ("sha256", "shard"):
            rows[name] = table[name].to_pylist()  # to_numpy would load pandas, 30 MB in each process
    return rows, encoded.dictionary.to_pylist()
