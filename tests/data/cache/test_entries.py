import zlib
from io import BytesIO

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightowl.data.cache.entries import ROW, Key, aligned, checksum, key_of, keys, make_row, pad
from nightowl.data.cache.tables import from_parquet, to_parquet
from nightowl.data.images import Size
from nightowl.data.manifest import Image


def sum_by_hand(stored: bytes) -> int:
    """The documented formula, without numpy."""
    pages = [stored[first : first + 4096] for first in range(0, len(stored), 4096)]
    sums = [sum(int.from_bytes(page[n : n + 8], "little") for n in range(0, len(page), 8)) % 2**64 for page in pages]
    return zlib.crc32(b"".join(value.to_bytes(8, "little") for value in sums))


@given(st.binary(min_size=1, max_size=9_000))
def test_the_checksum_is_the_documented_one(stored: bytes) -> None:
    assert checksum(np.frombuffer(pad(stored), np.uint8)) == sum_by_hand(pad(stored))


@given(st.integers(0, 12_287), st.integers(1, 255))
def test_any_changed_byte_changes_the_checksum(where: int, flip: int) -> None:
    stored = np.random.default_rng(0).integers(0, 256, 12_288, dtype=np.uint8)
    before = checksum(stored)
    stored[where] ^= flip
    assert checksum(stored) != before


@pytest.mark.parametrize("first", [0, 4096, 8192])
def test_a_lost_or_exchanged_page_changes_the_checksum(first: int) -> None:
    stored = np.random.default_rng(0).integers(0, 256, 12_288, dtype=np.uint8)
    lost, exchanged = stored.copy(), np.roll(stored, 4096 + first)
    lost[first : first + 4096] = 0
    assert checksum(lost) != checksum(stored)
    assert (checksum(exchanged) == checksum(stored)) is (first == 8192), "rolled by its whole length it is the same"


@given(st.integers(0, 10_000))
def test_padding_reaches_the_next_multiple_of_64(num_bytes: int) -> None:
    assert len(pad(bytes(num_bytes))) == aligned(num_bytes)
    assert aligned(num_bytes) % 64 == 0 and 0 <= aligned(num_bytes) - num_bytes < 64


def test_rows_come_back_from_a_table_that_others_can_read() -> None:
    values = [make_row(Key(f"{n:064x}", 4, 8 + n), Size(80, 40), 64 * n, 96 + n, pad(bytes(96 + n))) for n in range(3)]
    rows = np.array(values, ROW)
    rows["shard"] = [1, 0, 1]
    content = to_parquet(rows, ["a", "b"])
    found, names = from_parquet(content)
    assert keys(found) == keys(rows) == [Key(f"{n:064x}", 4, 8 + n) for n in range(3)]
    assert [names[number] for number in found["shard"]] == ["b", "a", "b"]
    assert all(np.array_equal(found[name], rows[name]) for name in ROW.names or () if name != "shard")
    assert pq.read_schema(BytesIO(content)).field("sha256").type == "string"


def test_both_rules_share_an_image_where_they_agree() -> None:
    same, other = (Image("a", "0" * 64, 1, width, height, "train", ()) for width, height in ((640, 480), (640, 427)))
    assert key_of(same, 96, "load_image") == key_of(same, 96, "letterbox")
    assert key_of(other, 96, "load_image") != key_of(other, 96, "letterbox")
