"""Which images are one photograph, told from images that are merely alike. Pure: hashes and thumbnails in, pairs out.

Two images are near duplicates when their hashes differ in few bits and their thumbnails correlate. Products of one layout under
one camera satisfy both without being the same photograph; but there each image has many others that resemble it equally. So an
image with at least CROWD images near it is a near duplicate only of one that is far nearer than those: the ratio test of
D. Lowe (Distinctive Image Features from Scale-Invariant Keypoints, 2004). The pairs that fail it are returned as alike.

N: images. P: pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nightowl.data.hamming import TooManyPairs, pairs_within

CROWD = 5  # an image and up to CROWD - 1 copies of it are copies; more are a crowd
DISTINCT = 0.1  # of the difference to the CROWD-th nearest: measured, see benchmarks/audit.md
MIN_CONTRAST = 2.0  # grey levels, standard deviation; below it an image has nothing to be compared by
MAX_PAIRS = 5_000_000
_CHUNK = 1 << 14


@dataclass(frozen=True)
class NearPairs:
    """Pairs (P, 2) of indices, first < second, their difference (P,) and bits (P,); `alike` (A, 2) failed the ratio test.

    `radius` is the number of bits that was searched to: less than asked for where too many hashes are alike, and -1 where even
    equal ones are too many to compare.
    """

    pairs: NDArray[np.int64]
    differences: NDArray[np.float32]
    bits: NDArray[np.uint8]
    alike: NDArray[np.int64]
    radius: int


def find_near(
    hashes: NDArray[np.uint64], thumbnails: NDArray[np.uint8], radius: int, max_difference: float, max_pairs: int = MAX_PAIRS
) -> NearPairs:
    """The near duplicates among N images: `hashes` (N,), `thumbnails` (N, pixels) grey."""
    usable = np.flatnonzero(thumbnails.std(axis=1) >= MIN_CONTRAST) if len(thumbnails) else np.empty(0, np.int64)
    first, second, bits, searched = _candidates(hashes[usable], radius, max_pairs)
    first, second = usable[first], usable[second]
    differences = _differences(thumbnails, first, second)
    close = differences <= max_difference
    limit = DISTINCT * _crowd_difference(len(hashes), first, second, differences)
    distinct = close & (differences <= np.minimum(limit[first], limit[second]))
    pairs = np.stack([first, second], axis=1)
    return NearPairs(pairs[distinct], differences[distinct], bits[distinct], pairs[close & ~distinct], searched)


def _candidates(
    hashes: NDArray[np.uint64], radius: int, max_pairs: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], int]:
    for searched in range(radius, -1, -1):
        try:
            return *pairs_within(hashes, searched, max_pairs), searched
        except TooManyPairs:
            continue
    nothing = np.empty(0, np.int64)
    return nothing, nothing, np.empty(0, np.uint8), -1


def _differences(thumbnails: NDArray[np.uint8], first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float32]:
    """1 - correlation of the thumbnails of each pair (P,): 0 where they differ in brightness and contrast alone, at most 2."""
    differences = np.empty(len(first), np.float32)
    for start in range(0, len(first), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        product = _normalised(thumbnails[first[chunk]]) * _normalised(thumbnails[second[chunk]])
        differences[chunk] = np.maximum(0, 1 - product.sum(axis=1))
    return differences


def _normalised(thumbnails: NDArray[np.uint8]) -> NDArray[np.float32]:
    levels = thumbnails.astype(np.float32)
    levels -= levels.mean(axis=1, keepdims=True)
    normalised: NDArray[np.float32] = levels / np.linalg.norm(levels, axis=1, keepdims=True)
    return normalised


def _crowd_difference(
    num: int, first: NDArray[np.int64], second: NDArray[np.int64], differences: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Each image's difference to its CROWD-th nearest candidate (N,); infinite where it has fewer."""
    found = np.full(num, np.inf)
    image, values = np.concatenate([first, second]), np.concatenate([differences, differences])
    order = np.lexsort((values, image))
    image, values = image[order], values[order]
    starts = np.searchsorted(image, np.arange(num))
    at = starts + CROWD - 1
    inside = at < len(image)
    inside[inside] = image[at[inside]] == np.flatnonzero(inside)
    found[inside] = values[at[inside]]
    return found
