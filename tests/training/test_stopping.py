import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from nightowl.errors import Preempted
from nightowl.training.stopping import stop_requests


def preempt(signum: int, frame: FrameType | None) -> None:
    raise Preempted("asked to stop")


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, preempt)
    yield
    signal.signal(signal.SIGTERM, before)


def test_nothing_is_raised_while_nobody_asks() -> None:
    with stop_requests() as request:
        request.check()


def test_a_signal_ends_the_work_at_once() -> None:
    with pytest.raises(Preempted), stop_requests():
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, Preempted), (signal.SIGINT, KeyboardInterrupt)])
def test_a_swallowed_request_is_raised_again_at_the_next_step(number: int, error: type[BaseException]) -> None:
    with stop_requests() as request:
        with contextlib.suppress(BaseException):
            os.kill(os.getpid(), number)
        with pytest.raises(error):
            request.check()


def test_the_handlers_are_as_they_were_afterwards() -> None:
    with contextlib.suppress(Preempted), stop_requests():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is preempt


def test_another_thread_has_no_signals_to_watch() -> None:
    said: list[str] = []

    def work() -> None:
        with stop_requests() as request:
            request.check()
            said.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert said == ["done"]
