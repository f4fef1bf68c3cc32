"""A request to stop that cannot be lost.

The handlers in force raise (Preempted, KeyboardInterrupt), and so end a long computation at once. But library code has blanket
`except Exception` clauses that may swallow what they raise; so it is also remembered, and raised again at the next step.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_Handler = Callable[[int, FrameType | None], object]


class StopRequest:
    """What was asked so far; `check` is cheap, to be called at every step."""

    def __init__(self) -> None:
        self._asked: BaseException | None = None

    def check(self) -> None:
        """Raise again what a signal handler raised, if any did."""
        if self._asked is not None:
            raise self._asked

    def remembering(self, handler: _Handler) -> _Handler:
        """`handler`, with what it raises remembered."""

        def remember(signum: int, frame: FrameType | None) -> None:
            try:
                handler(signum, frame)
            except BaseException as error:
                self._asked = error
                raise

        return remember


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Watch the signals that stop a stage, by wrapping the handlers in force; only the main thread has any."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, request.remembering(handler))
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
