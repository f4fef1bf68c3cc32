import threading
from collections.abc import Iterator

import pytest

from nightowl.cloud.parallel import in_parallel


def test_results_come_in_the_order_of_the_items_and_many_run_at_once() -> None:
    meeting = threading.Barrier(4, timeout=30)

    def after_four_have_met(number: int) -> int:
        meeting.wait()
        return number * number

    assert list(in_parallel(after_four_have_met, range(40), 4)) == [number * number for number in range(40)]


def test_no_more_items_are_taken_than_can_soon_be_worked_on() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = in_parallel(lambda number: number, items(), 2)
    next(results)
    assert len(taken) <= 8
    results.close()  # type: ignore[attr-defined]


def test_the_first_error_is_told_raised_and_ends_it() -> None:
    begun, told = [], []

    def fail_at_three(number: int) -> None:
        begun.append(number)
        if number == 3:
            raise ValueError("three")

    with pytest.raises(ValueError, match="three"):
        list(in_parallel(fail_at_three, range(1000), 1, told.append))
    assert [str(error) for error in told] == ["three"]
    assert len(begun) < 20
