import threading
import time

import pytest

from nightowl.data.threads import NUM_THREADS, in_threads, stream_in_threads
from nightowl.errors import DataError
from nightowl.progress import untracked


def test_results_come_in_order() -> None:
    assert in_threads(lambda number: number * number, range(100), "squaring", untracked) == [n * n for n in range(100)]


def test_after_an_error_what_has_not_begun_does_not_begin() -> None:
    begun, lock = [], threading.Lock()

    def work(number: int) -> None:
        with lock:
            begun.append(number)
        if number == 0:
            raise DataError("broken")
        time.sleep(0.01)

    with pytest.raises(DataError, match="broken"):
        in_threads(work, range(10_000), "working", untracked)
    assert len(begun) < 100 * NUM_THREADS


def test_a_stream_keeps_order_and_begins_only_a_little_ahead() -> None:
    begun = list[int]()

    def work(number: int) -> int:
        begun.append(number)
        return number

    stream = stream_in_threads(work, range(1_000), "x", untracked, num_threads=2)
    assert [next(stream) for _ in range(10)] == list(range(10))
    assert len(begun) <= 10 + 2 * 2 + 1
    stream.close()
    assert len(begun) <= 10 + 2 * 2 + 1, "nothing begins after the taker has stopped"


def test_a_stream_raises_what_its_function_raises_in_its_place() -> None:
    stream = stream_in_threads(lambda number: 1 // (3 - number), [0, 2, 3, 0], "x", untracked, num_threads=1)
    assert [next(stream), next(stream)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(stream)
