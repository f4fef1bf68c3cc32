import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from nightowl.errors import Preempted
from nightowl.processes import ALREADY
from nightowl.training.stopping import AnyStop, SaveRequest, SignalStop


def preempt(signum: int, frame: FrameType | None) -> None:
    raise Preempted("asked to stop, and it is known why")


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, preempt)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, Preempted), (signal.SIGINT, KeyboardInterrupt)])
def test_a_signal_is_noted_and_passed_on_at_the_end(number: int, error: type[BaseException]) -> None:
    reached = list[str | None]()

    def work(stop: SignalStop) -> None:
        os.kill(os.getpid(), number)
        reached.append(stop.reason())

    with pytest.raises(error), SignalStop().listening() as stop:
        work(stop)
    assert reached == ["asked to stop"]
    assert signal.getsignal(signal.SIGTERM) is preempt


def test_a_second_interruption_is_answered_and_the_first_one_counts(capfd: pytest.CaptureFixture[str]) -> None:
    answers: list[str] = []

    def work(stop: SignalStop) -> None:
        for number in (
            signal.SIGTERM,
            signal.SIGTERM,
            signal.SIGINT,
        ):  # a group's leader and torchrun may both ask: no impatience
            os.kill(os.getpid(), number)
            answers.append(capfd.readouterr().err)
        assert stop.reason() == "asked to stop"

    with pytest.raises(Preempted, match="it is known why"), SignalStop().listening() as stop:
        work(stop)
    assert answers == ["", "", ALREADY + "\n"]


def be_killed_and_raise(error: Exception) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    raise error


def test_the_handler_in_force_says_why() -> None:
    with pytest.raises(Preempted, match="it is known why"), SignalStop().listening():
        be_killed_and_raise(Preempted("asked to stop"))


def test_an_error_is_not_covered_by_a_request_to_stop() -> None:
    with pytest.raises(ValueError, match="broken"), SignalStop().listening():
        be_killed_and_raise(ValueError("broken"))
    assert signal.getsignal(signal.SIGTERM) is preempt


def test_nothing_is_asked_while_nobody_asks() -> None:
    with SignalStop().listening() as stop:
        assert stop.reason() is None


def test_another_thread_has_no_signals_to_watch() -> None:
    said: list[str | None] = []

    def work() -> None:
        with SignalStop().listening() as stop:
            said.append(stop.reason())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert said == [None]


class Asks:
    def __init__(self, why: str | None) -> None:
        self.why = why

    def reason(self) -> str | None:
        return self.why


def test_the_first_of_several_that_asks_gives_the_reason() -> None:
    assert AnyStop((Asks(None), Asks("spot notice"), Asks("deadline"))).reason() == "spot notice"
    assert AnyStop(()).reason() is None


def test_a_touch_asks_once_for_a_state_to_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "please"
    request = SaveRequest(path)
    assert not request.asks()
    path.touch()
    assert request.asks() and request.asks(), "until it is answered"
    request.answered()
    assert not request.asks()
    os.utime(path, ns=(1, 1))
    assert request.asks()


def test_a_touch_before_the_training_began_asks_for_nothing_and_no_file_neither(tmp_path: Path) -> None:
    (tmp_path / "please").touch()
    assert not SaveRequest(tmp_path / "please").asks() and not SaveRequest(None).asks()
