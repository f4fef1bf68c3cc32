"""Pairs of 64-bit hashes that differ in few bits: exact, by multi-index hashing.

Of two hashes that differ in at most r bits, cut into r + 1 pieces, at least one piece is equal (the pigeonhole principle); so
only hashes that share a piece are compared. M. Norouzi, A. Punjani, D. J. Fleet, Fast Search in Hamming Space with Multi-Index
Hashing (CVPR 2012). N: hashes. P: pairs.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

BITS = 64
_BLOCK = 1 << 22  # comparisons at once

Hashes = NDArray[np.uint64]
Indices = NDArray[np.int64]


class TooManyPairs(Exception):
    """More pairs than asked for: so many hashes are alike that they say nothing."""


def pairs_within(hashes: Hashes, radius: int, max_pairs: int) -> tuple[Indices, Indices, NDArray[np.uint8]]:
    """All pairs of `hashes` (N,) that differ in at most `radius` bits: first (P,) < second (P,), and the bits that differ (P,).

    Raises:
        TooManyPairs: when there are more than `max_pairs`.
    """
    masks = _pieces(radius + 1)
    found: list[tuple[Indices, Indices, NDArray[np.uint8]]] = []
    num = 0
    for piece, mask in enumerate(masks):
        for first, second, bits in _within_piece(hashes, mask, radius):
            differ = hashes[first] ^ hashes[second]
            new = np.ones(len(first), np.bool_)
            for earlier in masks[:piece]:
                new &= (differ & earlier) != 0  # else found before
            found.append((first[new], second[new], bits[new]))
            num += int(new.sum())
            if num > max_pairs:
                raise TooManyPairs
    first, second, bits = (np.concatenate(parts) for parts in zip(*found, strict=True)) if found else _nothing()
    order = np.lexsort((second, first))
    return first[order], second[order], bits[order]


def _pieces(num: int) -> list[np.uint64]:
    """Masks of `num` runs of bits that together are all of them, as equal in length as can be."""
    edges = [BITS * piece // num for piece in range(num + 1)]
    return [np.uint64((1 << end) - (1 << start)) for start, end in pairwise(edges)]


def _within_piece(hashes: Hashes, mask: np.uint64, radius: int) -> Iterator[tuple[Indices, Indices, NDArray[np.uint8]]]:
    """Pairs within `radius` among hashes that are equal under `mask`."""
    keys = hashes & mask
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))
    for start, end in pairwise([*starts.tolist(), len(order)]):
        members = order[start:end]
        step = max(1, _BLOCK // len(members))
        for row in range(0, len(members) - 1, step):
            rows, columns = members[row : row + step], members[row:]
            bits = np.bitwise_count(hashes[rows, None] ^ hashes[None, columns])
            i, j = np.nonzero(bits <= radius)
            once = j > i
            yield rows[i[once]], columns[j[once]], bits[i[once], j[once]]


def _nothing() -> tuple[Indices, Indices, NDArray[np.uint8]]:
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8)
