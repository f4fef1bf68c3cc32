import itertools
import threading
import time

import pytest

from nightowl.cloud.retry import Retrying, RetryPolicy, Transient
from nightowl.errors import RemoteError

POLICY = RetryPolicy(attempts=4, first_seconds=1.0, longest_seconds=5.0)


@pytest.mark.parametrize(
    ("failures", "asked", "draw", "seconds", "reason"),
    [
        (1, None, 0.0, 0.5, "half of the first pause at least"),
        (2, None, 0.0, 1.0, "it doubles"),
        (3, None, 0.999, 4.0, "and nearly all of it at most"),
        (9, None, 0.999, 5.0, "up to the longest"),
        (1, 3.0, 0.0, 3.0, "the server's wish counts when it is longer"),
        (3, 0.0, 0.0, 2.0, "and not when it is shorter"),
        (1, 600.0, 0.0, 5.0, "nor beyond the longest"),
    ],
)
def test_pauses_grow_are_spread_and_heed_the_server(
    failures: int, asked: float | None, draw: float, seconds: float, reason: str
) -> None:
    assert POLICY.pause_seconds(failures, asked, draw) == pytest.approx(seconds, abs=0.01), reason


def test_what_passes_by_itself_is_tried_again() -> None:
    slept: list[float] = []
    attempts = itertools.count(1)

    def third_time() -> str:
        if next(attempts) < 3:
            raise Transient("not yet")
        return "done"

    assert Retrying(POLICY, slept.append)("s3://b/key", third_time) == "done"
    assert len(slept) == 2


def test_giving_up_names_what_was_wanted_the_last_reason_and_the_number_of_attempts() -> None:
    def never() -> None:
        raise Transient("503 SlowDown")

    with pytest.raises(RemoteError, match=r"s3://b/key: 503 SlowDown; gave up after 4 attempts"):
        Retrying(POLICY, lambda seconds: None)("s3://b/key", never)


def test_any_other_error_is_not_tried_again() -> None:
    attempts = []

    def broken() -> None:
        attempts.append(1)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        Retrying(POLICY)("s3://b/key", broken)
    assert len(attempts) == 1


def test_a_pause_that_one_caller_was_told_to_make_holds_for_the_others() -> None:
    slept: list[float] = []
    retrying = Retrying(POLICY, slept.append)
    with pytest.raises(RemoteError):
        retrying("s3://b/one", _slow_down)
    before = len(slept)
    retrying("s3://b/two", lambda: None)
    assert len(slept) == before + 1
    assert slept[-1] > 0.5


def test_giving_up_ends_a_pause_and_makes_no_further_attempt() -> None:
    retrying = Retrying(RetryPolicy(attempts=9, first_seconds=60.0, longest_seconds=60.0))
    threading.Timer(0.1, retrying.give_up).start()
    begun = time.monotonic()
    with pytest.raises(RemoteError, match="gave up after 2 attempts"):
        retrying("s3://b/key", _slow_down)
    assert time.monotonic() - begun < 20


def _slow_down() -> None:
    raise Transient("503 SlowDown", slow_down=True)
