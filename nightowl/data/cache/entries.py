"""One row an image: what it is, where its bytes lie, and their checksum.

An image is known by its key: the SHA-256 of the source file and the size that it was brought to.
"""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nightowl.data.images import Size
from nightowl.data.manifest import Image
from nightowl.data.resize import Rule, letterbox_size, training_size
from nightowl.files import canonical_json, sha256_bytes

ALIGNMENT = 64
_PAGE_WORDS = 512

Rows = NDArray[np.void]
ROW = np.dtype(
    [
        ("sha256", "S64"),
        ("height", "<i4"),
        ("width", "<i4"),
        ("original_height", "<i4"),
        ("original_width", "<i4"),
        ("shard", "<i4"),
        ("offset", "<i8"),
        ("num_bytes", "<i8"),
        ("checksum", "<u4"),
    ]
)


class Key(NamedTuple):
    """What identifies the pixels of an image, within one kind of cache."""

    sha256: str
    height: int
    width: int


def key_of(image: Image, image_size: int, rule: Rule) -> Key:
    """The key of an image brought to `image_size` by `rule`; it is as little as both rules share, where they agree."""
    by_rule = training_size if rule == "load_image" else letterbox_size
    size = by_rule(image.width, image.height, image_size)
    return Key(_digest(image), size.height, size.width)


def key_of_version(of_images: Sequence[Key]) -> str:
    """The key of a dataset version, from those of its images in their order."""
    return sha256_bytes(canonical_json(of_images).encode())


def _digest(image: Image) -> str:
    """The source file's digest; of a part of the image that of the text `DIGEST:x,y,width,height`."""
    if image.window is None:
        return image.sha256
    return sha256_bytes(f"{image.sha256}:{','.join(map(str, image.window))}".encode())


def make_row(key: Key, original: Size, offset: int, num_bytes: int, padded: bytes) -> tuple[bytes | int, ...]:
    """The values of a row of ROW, for an image of `num_bytes`; its shard is still 0."""
    place = (0, offset, num_bytes, checksum(np.frombuffer(padded, np.uint8)))
    return (key.sha256.encode(), key.height, key.width, original.height, original.width, *place)


def pad(stored: bytes) -> bytes:
    """`stored` with zeros to the next multiple of ALIGNMENT."""
    return stored + bytes(missing) if (missing := -len(stored) % ALIGNMENT) else stored


def aligned(num_bytes: int) -> int:
    """The next multiple of ALIGNMENT."""
    return -(-num_bytes // ALIGNMENT) * ALIGNMENT


def checksum(stored: NDArray[np.uint8]) -> int:
    """CRC-32 over the sums, modulo 2^64, of each 4096 bytes taken as little-endian 64-bit words; `stored` (n,) is padded.

    A changed byte or lost page always changes it, at six times the speed of a CRC-32 of the bytes.
    """
    words = stored.view("<u8")
    return zlib.crc32(np.add.reduceat(words, np.arange(0, len(words), _PAGE_WORDS)).data)


def is_sound(row: np.void, shard: NDArray[np.uint8]) -> bool:
    """Whether the bytes of an image in its shard's file (n,) are those that were written."""
    first = int(row["offset"])
    return checksum(shard[first : first + aligned(int(row["num_bytes"]))]) == int(row["checksum"])


def keys(rows: Rows) -> list[Key]:
    columns = (rows["sha256"].tolist(), rows["height"].tolist(), rows["width"].tolist())
    return [Key(sha256.decode(), height, width) for sha256, height, width in zip(*columns, strict=True)]
