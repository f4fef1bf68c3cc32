"""Progress of anything that may take longer than two seconds.

On a terminal a bar appears once two seconds have passed; elsewhere a plain line is written about every ten seconds, so that
a log stays readable. What ends sooner shows nothing. All of it goes to standard error: standard output is for results.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import ExitStack
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

SHOW_AFTER_SECONDS = 2.0
LINE_EVERY_SECONDS = 10.0

T = TypeVar("T")
Clock = Callable[[], float]


class Track(Protocol):
    """What `track` and `untracked` are: pass items through, saying how far it is."""

    def __call__(self, items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]: ...


def untracked(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Yield each of `items` and say nothing."""
    yield from items


def track(
    items: Iterable[T],
    description: str,
    total: int | None = None,
    *,
    console: Console | None = None,
    clock: Clock = time.monotonic,
) -> Iterator[T]:
    """Yield each of `items`, showing how far it is. `total` is the number of items, when `items` has no length of its own."""
    total = len(items) if total is None and isinstance(items, Sized) else total
    console = console or Console(stderr=True)
    return (_bar if console.is_terminal else _lines)(items, description, total, console, clock)


def _bar(items: Iterable[T], description: str, total: int | None, console: Console, clock: Clock) -> Iterator[T]:
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task(description, total=total)
    begun, shown = clock(), False
    with ExitStack() as stack:
        for done, item in enumerate(items):
            if not shown and clock() - begun >= SHOW_AFTER_SECONDS:
                stack.enter_context(bar)
                shown = True
            bar.update(task, completed=done)
            yield item


def _lines(items: Iterable[T], description: str, total: int | None, console: Console, clock: Clock) -> Iterator[T]:
    begun = said = clock()
    done = 0
    for done, item in enumerate(items):
        if clock() - said >= LINE_EVERY_SECONDS:
            said = clock()
            _say(console, description, done, total, said - begun)
        yield item
    if said > begun:
        _say(console, description, done + 1, total, clock() - begun)


def _say(console: Console, description: str, done: int, total: int | None, seconds: float) -> None:
    of = "" if total is None else f" of {total}"
    console.print(f"{description}: {done}{of}, {seconds:.0f} s", highlight=False, markup=False, soft_wrap=True)
