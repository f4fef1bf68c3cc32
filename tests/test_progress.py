import io
from collections.abc import Callable, Iterator

import pytest
from rich.console import Console

from nightowl.progress import track


def ticking(step: float) -> Callable[[], float]:
    """A clock that moves `step` seconds each time it is read."""
    times = iter(range(10_000))
    return lambda: next(times) * step


def show(num_items: int, step: float, *, terminal: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80)
    assert list(track(range(num_items), "hashing", console=console, clock=ticking(step))) == list(range(num_items))
    return out.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_what_ends_soon_shows_nothing(terminal: bool) -> None:
    assert show(5, 0.01, terminal=terminal) == ""


def test_a_bar_appears_on_a_terminal_after_two_seconds() -> None:
    assert "hashing" in show(10, 1.0, terminal=True)


def test_a_log_gets_a_line_every_ten_seconds_and_a_last_one() -> None:
    lines = show(20, 5.0, terminal=False).splitlines()
    assert 3 <= len(lines) <= 15
    assert lines[-1].startswith("hashing: 20 of 20, ")


def test_no_items_are_no_progress() -> None:
    assert show(0, 5.0, terminal=False) == ""


def test_items_without_a_length_are_counted_without_a_total() -> None:
    def items() -> Iterator[int]:
        yield from range(9)

    out = io.StringIO()
    list(track(items(), "reading", console=Console(file=out), clock=ticking(10.0)))
    assert "reading: 9, " in out.getvalue()
