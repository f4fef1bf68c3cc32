import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightowl.data.hamming import TooManyPairs, pairs_within

WORD = st.integers(0, 2**64 - 1)


def brute_force(hashes: list[int], radius: int) -> list[tuple[int, int, int]]:
    pairs = [(i, j, (a ^ b).bit_count()) for i, a in enumerate(hashes) for j, b in enumerate(hashes) if i < j]
    return [pair for pair in pairs if pair[2] <= radius]


def found(hashes: list[int], radius: int) -> list[tuple[int, int, int]]:
    first, second, bits = pairs_within(np.array(hashes, np.uint64), radius, 1_000_000)
    return list(zip(first.tolist(), second.tolist(), bits.tolist(), strict=True))


@st.composite
def alike(draw: st.DrawFn) -> list[int]:
    """Hashes of which many lie near each other."""
    hashes = draw(st.lists(WORD, min_size=1, max_size=6))
    for _ in range(draw(st.integers(0, 25))):
        flips = draw(st.sets(st.integers(0, 63), max_size=12))
        hashes.append(draw(st.sampled_from(hashes)) ^ sum(1 << bit for bit in flips))
    return hashes


@settings(max_examples=60)
@given(alike(), st.integers(0, 16))
def test_it_finds_exactly_what_comparing_all_finds(hashes: list[int], radius: int) -> None:
    assert found(hashes, radius) == brute_force(hashes, radius)


def test_a_pair_just_within_every_piece_but_one_is_found() -> None:
    spread = sum(1 << bit for bit in range(0, 64, 8))  # one bit in each of eight bytes
    assert found([0, spread], 8) == [(0, 1, 8)]
    assert found([0, spread], 7) == []


@pytest.mark.parametrize("hashes", [[], [7]])
def test_nothing_to_pair_gives_no_pair(hashes: list[int]) -> None:
    assert found(hashes, 8) == []


def test_more_pairs_than_asked_for_are_refused() -> None:
    same = np.zeros(100, np.uint64)
    assert len(pairs_within(same, 0, 4950)[0]) == 4950
    with pytest.raises(TooManyPairs):
        pairs_within(same, 0, 4949)
