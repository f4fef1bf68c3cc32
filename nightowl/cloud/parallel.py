"""One function over many items, many at once, with a bounded number waiting: memory does not grow with their number."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    num_threads: int,
    on_error: Callable[[BaseException], None] = lambda error: None,
) -> Iterator[Result]:
    """The results in the order of `items`. The first exception, or an interruption, ends it: `on_error` is told, what runs is
    waited for, what waits is dropped."""
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(num_threads)
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= 4 * num_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BaseException as error:
        on_error(error)
        raise
    finally:
        pool.shutdown(cancel_futures=True)
