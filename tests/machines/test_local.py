"""The engine `local` with stand-ins for nodes: begun, replaced, adopted, ended. A whole run is in tests/soak."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nightowl.machines.board import CODE, Board
from nightowl.machines.local import LocalEngine
from nightowl.machines.records import RunEnd
from tests.machines.jobs import NOW, RUN, a_beat, a_job
from tests.machines.test_bootstrap import tar

# A node that says that it is there, and leaves when the run is over.
NODE = """
import pathlib, sys, time
words = dict(zip(sys.argv[2::2], sys.argv[3::2]))
run = pathlib.Path(words["--board"]) / "runs" / words["--run"]
with open("../../begun", "a") as begun:
    begun.write(words["--instance"] + " " + words["--address"] + "\\n")
while not (run / "END.json").exists():
    time.sleep(0.05)
"""
DEAF = NODE.replace("END.json", "nothing")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LocalEngine]:
    engine = LocalEngine(tmp_path, lambda: NOW)
    sent(engine, NODE)
    yield engine
    engine.tear_down(RUN, 0)


def sent(engine: LocalEngine, node: str) -> None:
    code = tar({"nightowl/__init__.py": "", "nightowl/cli.py": node})
    Board(engine.bucket, RUN).put_file(CODE, code)


def pids(engine: LocalEngine) -> list[int | None]:
    return [engine.node_pid(RUN, number) for number in (0, 1)]


def begun(folder: Path) -> list[str]:
    path = folder / "nodes" / RUN / "begun"
    return path.read_text().splitlines() if path.exists() else []


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_each_node_is_a_process_with_an_address_and_another_engine_adopts_them(engine: LocalEngine, tmp_path: Path) -> None:
    assert engine.submit(a_job(nodes=2)) == RUN
    until(lambda: len(begun(tmp_path)) == 2)
    assert sorted(line.split()[1] for line in begun(tmp_path)) == ["127.0.0.1", "127.0.0.2"]
    before = pids(engine)
    LocalEngine(tmp_path, lambda: NOW).submit(a_job(nodes=2))
    assert pids(engine) == before and None not in before


def test_a_node_that_is_killed_is_replaced_by_another_instance(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(a_job())
    until(lambda: len(begun(tmp_path)) == 1)
    first = engine.node_pid(RUN, 0)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: engine.node_pid(RUN, 0) is None)
    later = LocalEngine(tmp_path, lambda: NOW + timedelta(seconds=1))
    later.renew(RUN)
    until(lambda: len(begun(tmp_path)) == 2)
    assert len({line.split()[0] for line in begun(tmp_path)}) == 2
    assert later.tear_down(RUN).nothing


def test_a_process_that_got_the_number_of_a_node_is_not_taken_for_it(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(a_job())
    path = tmp_path / "nodes" / RUN / "0" / "pid"
    started = path.read_text().split()[1]
    path_before = path.read_text()
    path.write_text(f"{os.getpid()} {started}")
    assert engine.node_pid(RUN, 0) is None
    path.write_text(path_before)


def test_nothing_is_begun_for_a_run_that_is_over_cancelled_or_late(tmp_path: Path) -> None:
    for number, late in enumerate((False, True)):
        engine = LocalEngine(tmp_path / str(number), lambda late=late: NOW + timedelta(days=late))  # type: ignore[misc]
        board = Board(engine.bucket, RUN)
        board.put_job(a_job())
        if not late:
            board.put_end(RunEnd(how="done", message="", at=NOW))
        engine.renew(RUN)
        assert engine.node_pid(RUN, 0) is None


def test_tearing_down_lets_nodes_leave_and_kills_those_that_do_not(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(a_job())
    until(lambda: len(begun(tmp_path)) == 1)
    assert engine.tear_down(RUN).nothing and engine.status(RUN).state == "cancelled"
    Board(engine.bucket, RUN).bucket.delete("END.json")
    for path in (tmp_path / "nodes" / RUN / "0" / "tree").rglob("cli.py"):
        path.write_text(DEAF)
    engine.renew(RUN)
    until(lambda: len(begun(tmp_path)) == 2)
    assert engine.tear_down(RUN, patience_seconds=0.2).nothing


def test_what_nodes_wrote_and_how_the_run_is_are_read_from_the_board(engine: LocalEngine) -> None:
    board = Board(engine.bucket, RUN)
    board.put_job(a_job())
    assert engine.status(RUN).state == "waiting"
    board.put_beat(a_beat(state="training"))
    board.put_log("i-1", 0, "epoch 1\n")
    assert engine.status(RUN).state == "running"
    assert [line.text for line in engine.logs(RUN, {})] == ["epoch 1"]
    engine.cancel(RUN)
    assert board.cancelled() is not None


def test_times_are_of_this_machine() -> None:
    assert abs((LocalEngine(Path("/nowhere"))._now() - datetime.now(UTC)).total_seconds()) < 5
