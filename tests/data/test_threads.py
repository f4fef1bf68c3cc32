import threading
import time

import pytest

from nightowl.data.threads import NUM_THREADS, in_threads
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
