"""One function over many files at once; reading and hashing leave Python's lock, so threads are enough."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
