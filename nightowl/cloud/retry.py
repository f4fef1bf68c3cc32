"""Trying again: what passes by itself is tried with growing, random pauses; a server that asks for less gets less.

A pause that one thread was told to make holds for all of them, so that 64 connections do not answer "slow down" with 63
further requests.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from nightowl.errors import RemoteError

T = TypeVar("T")


class Transient(Exception):
    """What may pass. `slow_down`: the server asked for fewer requests; `wait_seconds`: for how long, when it said so."""

    def __init__(self, reason: str, slow_down: bool = False, wait_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.slow_down, self.wait_seconds = slow_down, wait_seconds


@dataclass(frozen=True)
class RetryPolicy:
    """At most `attempts`; before the n-th repetition a pause of half to all of `first_seconds` * 2^(n-1), capped."""

    attempts: int = 8
    first_seconds: float = 0.2
    longest_seconds: float = 20.0

    def pause_seconds(self, failures: int, asked: float | None, draw: float) -> float:
        """How long to wait after `failures` (from 1) failures. `draw` in [0, 1) spreads the crowd."""
        grown = min(self.longest_seconds, self.first_seconds * 2.0 ** (failures - 1))
        return min(self.longest_seconds, max(asked or 0.0, grown * (0.5 + draw / 2)))


class Retrying:
    """Calls attempts by the policy; one for all threads of a storage."""

    def __init__(self, policy: RetryPolicy, sleep: Callable[[float], object] | None = None) -> None:
        self._given_up = threading.Event()
        self._policy, self._sleep = policy, sleep or self._given_up.wait
        self._lock, self._closed_until = threading.Lock(), 0.0

    def give_up(self) -> None:
        """No further attempts, and an end to every pause: those who wait get the error that they wait over."""
        self._given_up.set()

    def __call__(self, what: str, attempt: Callable[[], T]) -> T:
        """The result of `attempt`. Raises RemoteError, naming `what`, when each attempt was Transient."""
        begun = time.monotonic()
        for failures in range(1, self._policy.attempts + 1):
            self._sleep_while_closed()
            try:
                return attempt()
            except Transient as error:
                last = error
            if failures == self._policy.attempts or self._given_up.is_set():
                break
            self._pause(failures, last)
        seconds = time.monotonic() - begun
        raise RemoteError(f"{what}: {last}; gave up after {failures} attempts in {seconds:.0f} s: try again later")

    def _pause(self, failures: int, error: Transient) -> None:
        seconds = self._policy.pause_seconds(failures, error.wait_seconds, random.random())
        if error.slow_down:
            with self._lock:
                self._closed_until = max(self._closed_until, time.monotonic() + seconds)
        else:
            self._sleep(seconds)

    def closed_seconds(self) -> float:
        """For how long nothing should be asked, because the server said so to one of us; 0 when it may be."""
        seconds = self._closed_until - time.monotonic()
        return seconds * (1 + random.random() / 4) if seconds > 0 and not self._given_up.is_set() else 0.0

    def _sleep_while_closed(self) -> None:
        seconds = self.closed_seconds()
        if seconds:
            self._sleep(seconds)
