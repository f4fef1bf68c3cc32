"""The engine `local` with stand-ins for nodes: begun, replaced, adopted, ended. A whole run is in tests/soak."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nightowl.errors import SettingsError
from nightowl.machines.board import CODE, Board
from nightowl.machines.local import MAX_STARTS, LocalEngine
from nightowl.machines.local_past import KEPT_RUNS
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
    assert not (tmp_path / "nodes" / RUN / "0" / "tree").exists() and (tmp_path / "nodes" / RUN / "0" / "node.log").exists()
    Board(engine.bucket, RUN).bucket.delete("END.json")
    sent(engine, DEAF)
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


def test_a_run_that_ended_otherwise_than_done_begins_anew_and_one_that_is_done_does_not(engine: LocalEngine) -> None:
    engine.submit(a_job())
    assert engine.tear_down(RUN).nothing and engine.status(RUN).state == "cancelled"
    engine.submit(a_job())
    assert engine.status(RUN).state == "waiting" and engine.node_pid(RUN, 0) is not None
    Board(engine.bucket, RUN).put_end(RunEnd(how="done", message="", at=NOW))
    assert engine.tear_down(RUN).nothing
    engine.submit(a_job())
    assert engine.status(RUN).state == "done" and engine.node_pid(RUN, 0) is None


def test_a_run_whose_cancel_no_node_was_there_to_hear_begins_anew(engine: LocalEngine) -> None:
    Board(engine.bucket, RUN).put_job(a_job())
    engine.cancel(RUN)
    engine.submit(a_job())
    assert engine.status(RUN).state == "waiting" and engine.node_pid(RUN, 0) is not None


def test_a_run_past_its_hard_end_begins_anew_with_another_but_not_with_one_that_has_passed(tmp_path: Path) -> None:
    late = a_job().deadline + timedelta(hours=1)
    engine = LocalEngine(tmp_path, lambda: late)
    sent(engine, NODE)
    Board(engine.bucket, RUN).put_job(a_job())
    with pytest.raises(SettingsError, match="which has passed: see stop_at"):
        engine.submit(a_job())
    engine.submit(a_job(deadline=late + timedelta(hours=1)))
    assert engine.status(RUN).state == "waiting" and engine.node_pid(RUN, 0) is not None
    assert engine.tear_down(RUN, 0).nothing


def test_a_run_of_the_same_detector_with_other_inputs_gives_way(engine: LocalEngine) -> None:
    newer, other = RUN.replace("0", "f"), "line-0123456789abcdef"
    for run_id, detector in ((RUN, "demo"), (other, "line")):
        Board(engine.bucket, run_id).put_file(CODE, Board(engine.bucket, RUN).bucket.get(CODE))
        engine.submit(a_job(run_id=run_id, detector=detector))
    Board(engine.bucket, newer).put_file(CODE, Board(engine.bucket, RUN).bucket.get(CODE))
    engine.submit(a_job(run_id=newer))
    found = {status.run_id: (status.state, status.message) for status in engine.runs()}
    assert found[RUN] == ("cancelled", f"{newer} was asked for in its place") and engine.node_pid(RUN, 0) is None
    assert found[newer][0] == found[other][0] == "waiting"
    assert engine.tear_down(newer).nothing and engine.tear_down(other).nothing


def test_nodes_that_never_become_ready_end_the_run_with_what_the_last_one_said(tmp_path: Path) -> None:
    now = [NOW]
    engine = LocalEngine(tmp_path, lambda: now[0])
    sent(engine, "raise SystemExit('no such device')")
    engine.submit(a_job())
    for _ in range(MAX_STARTS):
        until(lambda: engine.node_pid(RUN, 0) is None)
        now[0] += timedelta(seconds=1)
        engine.renew(RUN)
    status = engine.status(RUN)
    assert (status.state, status.message) == ("poison", "3 nodes could not start; the last: no such device")
    assert len(engine._nodes.begun(RUN, 0)) == MAX_STARTS and engine.tear_down(RUN).nothing
    engine.submit(a_job())
    assert len(engine._nodes.begun(RUN, 0)) == 1, "the next attempt has as many starts"
    assert engine.tear_down(RUN).nothing


def test_nodes_that_die_after_they_were_ready_are_replaced_again_and_again(tmp_path: Path) -> None:
    now = [NOW]
    engine = LocalEngine(tmp_path, lambda: now[0])
    sent(engine, "raise SystemExit(1)")
    engine.submit(a_job())
    Board(engine.bucket, RUN).put_beat(a_beat(engine._nodes.begun(RUN, 0)[0], state="ready"))
    for number in range(2, 4):
        until(lambda: engine.node_pid(RUN, 0) is None)
        now[0] += timedelta(seconds=1)
        engine.renew(RUN)
        assert len(engine._nodes.begun(RUN, 0)) == number and not engine.status(RUN).over
    assert engine.tear_down(RUN).nothing


def test_code_that_was_unpacked_in_part_or_is_another_is_unpacked_anew(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(a_job())
    home = tmp_path / "nodes" / RUN / "0"
    until(lambda: len(begun(tmp_path)) == 1)
    pid = engine.node_pid(RUN, 0)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: engine.node_pid(RUN, 0) is None)
    (home / "code.sha256").unlink()  # as a kill in the midst of unpacking leaves it
    (home / "tree" / "nightowl" / "cli.py").unlink()
    engine.renew(RUN)
    until(lambda: len(begun(tmp_path)) == 2)


def test_what_runs_that_are_over_leave_behind_is_bounded(tmp_path: Path) -> None:
    engine = LocalEngine(tmp_path, lambda: NOW)
    names = [f"demo-{number:016x}" for number in range(KEPT_RUNS + 3)]
    for minutes, run_id in enumerate(names):
        board = Board(engine.bucket, run_id)
        board.put_job(a_job(run_id=run_id))
        board.put_end(RunEnd(how="done", message="", at=NOW + timedelta(minutes=minutes)))
        (tmp_path / "nodes" / run_id / "0").mkdir(parents=True)
    assert engine.tear_down(names[0]).nothing
    kept = [names[0], *names[-KEPT_RUNS:]]
    assert [status.run_id for status in engine.runs()] == kept, "its own account is not taken yet"
    assert sorted(path.name for path in (tmp_path / "nodes").iterdir()) == kept
    assert sorted(path.name for path in (tmp_path / "boards" / "runs").iterdir()) == kept


def test_a_node_is_told_nothing_by_the_variables_of_the_night(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTOWL_STOP_AT", "2026-07-01T06:00:00Z")
    sent(engine, NODE.replace("while", "import os\nprint(*[name for name in os.environ if 'NIGHTOWL' in name])\nwhile"))
    engine.submit(a_job())
    until(lambda: len(begun(tmp_path)) == 1)
    until(lambda: engine._nodes.last_words(RUN, 0) == "NIGHTOWL_NODE_HOME")


def test_times_are_of_this_machine() -> None:
    assert abs((LocalEngine(Path("/nowhere"))._now() - datetime.now(UTC)).total_seconds()) < 5
