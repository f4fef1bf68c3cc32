import errno
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO

import pytest

import nightowl.checkpoint.mirror
from nightowl.checkpoint.copies import commit_names, newest_writer, read_commits
from nightowl.checkpoint.plan import Cadence
from nightowl.checkpoint.run import Run
from nightowl.checkpoint.saver import Saver
from nightowl.checkpoint.serialise import State
from nightowl.cloud.bucket import FolderBucket
from nightowl.errors import Fenced, RemoteError, StorageError
from tests.checkpoint.conftest import Elsewhere, Opened, a_state, at, step_of


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nightowl.checkpoint.mirror, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(nightowl.checkpoint.mirror, "LONGEST_PAUSE_SECONDS", 0.02)


class Gate(FolderBucket):
    """A folder whose data objects are written only while `open`; `fault` is raised instead, when there is one."""

    open = threading.Event()
    fault: Exception | None = None

    def put_stream(self, key: str, produce: Callable[[IO[bytes]], object]) -> tuple[int, str]:
        assert self.open.wait(10)
        if self.fault is not None:
            raise self.fault
        return super().put_stream(key, produce)


@pytest.fixture
def gate(opened: Opened) -> Iterator[Run]:
    """A run whose writes wait until `gate.local.open` is set."""
    run = opened()
    run.local = Gate(run.local.root)
    run.local.open = threading.Event()
    yield run
    run.local.open.set()


def is_busy(saver: Saver) -> None:
    """Wait until the thread has taken the state that waited."""
    for _ in range(1000):
        if saver._busy and saver._waiting is None:
            return
        time.sleep(0.005)
    raise AssertionError("the writer took nothing")


def steps_saved(run: Run) -> list[int]:
    return [commit.moment.step for commit in reversed(read_commits(run.local))]


def test_what_was_saved_is_committed_when_the_block_ends(opened: Opened, said: list[str]) -> None:
    run = opened()
    with Saver(run, Cadence(), said.append) as saver:
        saver.save(lambda: a_state(7), at(7))
    assert step_of(opened()) == 7 and said == []


def test_saving_does_not_wait_for_the_disk_and_the_newest_replaces_what_waits(gate: Run, said: list[str]) -> None:
    with Saver(gate, Cadence(), said.append) as saver:
        saver.save(lambda: a_state(1), at(1))
        is_busy(saver)
        for step in (2, 3, 4):
            saver.save(lambda step=step: a_state(step), at(step))
        assert steps_saved(gate) == []
        gate.local.open.set()
        saver.flush()
        assert steps_saved(gate) == [1, 4]


def test_a_state_that_must_stay_is_not_replaced_but_waited_for(gate: Run, said: list[str]) -> None:
    with Saver(gate, Cadence(), said.append) as saver:
        saver.save(lambda: a_state(1), at(1))
        is_busy(saver)
        saver.save(lambda: a_state(2), at(2, epoch=1, reason="epoch", best=True))
        threading.Timer(0.1, gate.local.open.set).start()
        saver.save(lambda: a_state(3), at(3))
        saver.flush()
    assert steps_saved(gate) == [2, 3], "the first went when two newer ones stood"


def test_a_full_disk_is_said_once_and_the_training_goes_on_until_it_must_not(gate: Run, said: list[str]) -> None:
    gate.local.open.set()
    with Saver(gate, Cadence(), said.append) as saver:
        saver.save(lambda: a_state(1), at(1))
        saver.flush()
        gate.local.fault = OSError(errno.ENOSPC, "No space left on device", "data")
        for step in (2, 3):
            saver.save(lambda step=step: a_state(step), at(step))
            with pytest.raises(StorageError, match="the disk is full: free some space"):
                saver.flush()
        gate.local.fault = None
        saver.save(lambda: a_state(4), at(4))
        saver.flush()
    assert [line.partition(": free")[0] for line in said] == [
        "checkpoint of step 2 NOT saved: data: the disk is full",
        "checkpoints are saved again, as of step 4",
    ]
    assert said[0].endswith("; the training goes on, but step 1 is the last that was")
    assert steps_saved(gate) == [1, 4]


def test_a_process_that_was_replaced_is_told_at_its_next_save(opened: Opened, said: list[str]) -> None:
    with Saver(opened(), Cadence(), said.append) as saver:
        opened()
        saver.save(lambda: a_state(1), at(1))
        with pytest.raises(Fenced, match="taken over"):
            saver.flush()
        with pytest.raises(Fenced, match="taken over"):
            saver.save(lambda: a_state(2), at(2))


def test_a_state_that_cannot_be_serialised_is_raised_where_it_is_waited_for(opened: Opened, said: list[str]) -> None:
    with Saver(opened(), Cadence(), said.append) as saver:
        saver.save(lambda: {"lambda": lambda: None}, at(1))
        with pytest.raises(Exception, match="lambda"):
            saver.flush()
    assert "checkpoint of step 1 NOT saved" in said[0] and said[0].endswith("but none was saved yet")


def test_the_next_is_due_by_time_and_later_when_capturing_is_dear(opened: Opened, said: list[str]) -> None:
    now = 100.0

    def dear() -> State:
        time.sleep(0.05)
        return a_state(1)

    with Saver(opened(), Cadence(2.0), said.append, clock=lambda: now) as saver:
        assert not saver.is_due()
        now += 2.5
        assert saver.is_due()
        saver.save(dear, at(1))
        saver.flush()
        assert not saver.is_due()
        now += 2.5
        assert not saver.is_due() and saver.cost_seconds >= 0.05
        now += 100 * saver.cost_seconds
        assert saver.is_due()


def test_the_mirror_has_the_same_objects(opened: Opened, elsewhere: Elsewhere, said: list[str]) -> None:
    run = opened(elsewhere)
    with Saver(run, Cadence(), said.append) as saver:
        for step in (1, 2, 3, 4):
            saver.save(lambda step=step: a_state(step), at(step, epoch=step, reason="epoch", best=step == 1))
            saver.flush()
    assert commit_names(elsewhere) == commit_names(run.local)
    assert step_of(opened(elsewhere, local="another machine")) == 4 and said == []


def test_a_mirror_that_is_gone_is_said_once_and_gets_the_newest_when_it_is_back(
    opened: Opened, elsewhere: Elsewhere, said: list[str]
) -> None:
    run = opened(elsewhere)
    with Saver(run, Cadence(), said.append) as saver:
        elsewhere.fault = RemoteError("s3://checkpoints/run/: 503 SlowDown; gave up after 8 attempts in 25 s")
        for step in (1, 2, 3):
            saver.save(lambda step=step: a_state(step), at(step))
            saver.flush(mirror_seconds=0.1)
        assert steps_saved(run) == [2, 3]
        elsewhere.fault = None
        saver.flush(mirror_seconds=10)
    assert [commit.moment.step for commit in read_commits(elsewhere)] == [3]
    kept = [line for line in said if "has not got the newest" not in line]
    assert len(kept) == 2 and "the training goes on, committing to" in kept[0] and "503 SlowDown" in kept[0]
    assert kept[1] == "checkpoints are copied to s3://checkpoints/run/ again, as far as step 3"


def test_a_slow_mirror_holds_nothing_up(opened: Opened, elsewhere: Elsewhere, said: list[str]) -> None:
    run = opened(elsewhere)
    with Saver(run, Cadence(), said.append) as saver:
        elsewhere.open.clear()
        begun = time.monotonic()
        for step in (1, 2, 3):
            saver.save(lambda step=step: a_state(step), at(step))
            saver.flush(mirror_seconds=0.01)
        assert time.monotonic() - begun < 5
        assert said[-1] == f"s3://checkpoints/run/ has not got the newest checkpoint; {run.local.url} has"
        elsewhere.open.set()
        saver.flush(mirror_seconds=10)
    assert read_commits(elsewhere)[0].moment.step == 3


def test_a_process_that_was_replaced_elsewhere_is_told_too(opened: Opened, elsewhere: Elsewhere, said: list[str]) -> None:
    with Saver(opened(elsewhere), Cadence(), said.append) as saver:
        opened(elsewhere, local="another machine")
        saver.save(lambda: a_state(1), at(1))
        with pytest.raises(Fenced, match="writer 2; this process is writer 1"):
            saver.flush()
    assert commit_names(elsewhere) == []


def test_what_a_process_before_could_not_bring_there_is_brought(opened: Opened, elsewhere: Elsewhere, said: list[str]) -> None:
    with Saver(opened(), Cadence(), said.append) as saver:
        saver.save(lambda: a_state(1), at(1))
    with Saver(opened(elsewhere), Cadence(), said.append) as saver:
        saver.flush()
        assert [commit.moment.step for commit in read_commits(elsewhere)] == [1]
    assert newest_writer(elsewhere) == 2
