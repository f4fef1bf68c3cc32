"""One function over many files at once; reading and hashing leave Python's lock, so threads are enough."""

import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from nightowl.progress import Track

NUM_THREADS = 8

T = TypeVar("T")
R = TypeVar("R")


def in_threads(function: Callable[[T], R], items: Sequence[T], description: str, progress: Track) -> list[R]:
    """`function` of each item, in order. On the first error, or when stopped, what has not begun does not begin."""
    pool = ThreadPoolExecutor(NUM_THREADS)
    try:
        return list(progress(pool.map(function, items), description, len(items)))
    finally:
        pool.shutdown(cancel_futures=True)


def stream_in_threads(
    function: Callable[[T], R], items: Sequence[T], description: str, progress: Track, num_threads: int | None = None
) -> Generator[R, None, None]:
    """`function` of each item, in order, begun only a little ahead of who takes the results: memory holds a few of them.

    As many threads as this process may use cores. On an error, or when the taker stops, what has not begun does not begin.
    """
    num_threads = num_threads or len(os.sched_getaffinity(0))
    pool = ThreadPoolExecutor(num_threads)
    ahead = deque[Future[R]]()
    try:
        for item in progress(items, description, len(items)):
            ahead.append(pool.submit(function, item))
            if len(ahead) > 2 * num_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
