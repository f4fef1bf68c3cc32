"""Random streams by key."""

import numpy as np

from nightowl.data.streams import WHOLE_EPOCH, Streams


def test_a_stream_depends_on_its_key_alone() -> None:
    streams, other = Streams(), Streams()
    first = streams.of(1, 2, 3).random(10)
    streams.of(1, 2, 4).integers(0, 9, 3)  # leaves half a word behind
    assert np.array_equal(streams.of(1, 2, 3).random(10), first)
    assert np.array_equal(other.of(1, 2, 3).random(10), first)


def test_a_stream_is_that_of_philox_with_this_key() -> None:
    key = np.array([(5 << 32) + 7, 11], dtype=np.uint64)
    assert np.array_equal(Streams().of(5, 7, 11).random(9), np.random.Generator(np.random.Philox(key=key)).random(9))


def test_streams_of_different_keys_differ() -> None:
    streams, most = Streams(), 2**32 - 1
    keys = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (most, 0, 0), (0, most, 0), (most, most, 0), (0, 0, WHOLE_EPOCH)]
    assert len({streams.of(*key).random() for key in keys}) == len(keys)
