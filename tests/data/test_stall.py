"""The stall meter, on a clock that the test turns."""

from collections.abc import Iterator

from nightowl.data.stall import DataWait, StallMeter


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_waiting_and_working_are_told_apart() -> None:
    clock = Clock()

    def batches() -> Iterator[int]:
        for number, seconds in enumerate((3.0, 0.0, 1.0)):
            clock.now += seconds
            yield number

    meter, shares = StallMeter(clock), []
    for number in meter.watch(batches()):
        shares.append(meter.last.share)
        clock.now += 1.0 + number
    assert shares == [None, 0.75, 0.0]
    assert meter.last == DataWait(1.0, 4.0, 1)
    assert meter.all == DataWait(4.0, 10.0, 3)
    assert meter.all.share == 0.4


def test_no_step_has_no_share() -> None:
    meter = StallMeter(Clock())
    assert list(meter.watch([])) == []
    assert meter.all.share is None


def test_steps_add_up() -> None:
    assert DataWait(1, 2, 1) + DataWait(2, 4, 3) == DataWait(3, 6, 4)
