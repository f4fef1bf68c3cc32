import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pytest

from nightowl.errors import Preempted
from nightowl.notices import FileNotice, Notices, TimeNotice, ask_main_thread_to_stop


@dataclass
class Said:
    """A watcher that says what it is told to say; the twin of one that asks a machine."""

    notice: str | None = None
    looks: list[float] = field(default_factory=list)

    def look(self) -> str | None:
        self.looks.append(time.monotonic())
        return self.notice


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    def preempt(signum: int, frame: FrameType | None) -> None:
        raise Preempted("stopped")

    before = signal.signal(signal.SIGTERM, preempt)
    yield
    signal.signal(signal.SIGTERM, before)


def test_nothing_is_told_while_nobody_says_anything() -> None:
    watcher, told = Said(), threading.Event()
    with Notices([watcher], told.set, every_seconds=0.01).watched() as notices:
        time.sleep(0.1)
        assert notices.reason() is None and not told.is_set()
    asked = len(watcher.looks)
    assert asked > 2
    time.sleep(0.05)
    assert len(watcher.looks) <= asked + 1, "it is not asked when all is over"


def test_the_first_that_says_something_is_the_reason_and_it_is_told_once() -> None:
    told: list[int] = []
    watchers = [Said(), Said("taken back at 12:00"), Said("something else")]
    with Notices(watchers, lambda: told.append(1), every_seconds=0.01).watched() as notices:
        time.sleep(0.1)
    assert notices.reason() == "taken back at 12:00" and told == [1]


def test_a_notice_ends_a_main_thread_that_waits_for_something_else() -> None:
    watcher = Said()
    threading.Timer(0.1, lambda: setattr(watcher, "notice", "taken back")).start()
    begun = time.monotonic()
    with pytest.raises(Preempted), Notices([watcher], ask_main_thread_to_stop, every_seconds=0.01).watched():
        threading.Lock().acquire() and threading.Event().wait(20)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, None), ("", "asks to stop"), ("the line stops at 6\nmore", "the line stops at 6")],
)
def test_a_file_is_a_notice_when_it_appears(tmp_path: Path, content: str | None, said: str | None) -> None:
    notice = FileNotice(tmp_path / "stop")
    if content is not None:
        notice.path.write_text(content)
    assert notice.look() == (None if said is None else f"{notice.path}: {said}")


def test_a_file_that_cannot_be_read_is_a_notice_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "stop").mkdir()
    assert "not to be read" in str(FileNotice(tmp_path / "stop").look())


def test_a_time_is_a_notice_from_then_on() -> None:
    now = 99.0
    notice = TimeNotice(100.0, "06:00", clock=lambda: now)
    assert notice.look() is None
    now = 100.0
    assert notice.look() == "it is 06:00, the time to stop"
