"""The board: what is put is read back, and what is decided once stays decided."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from nightowl.cloud.bucket import FolderBucket
from nightowl.errors import RemoteError
from nightowl.machines.board import Board, runs
from nightowl.machines.engine import Remains, RunStatus
from nightowl.machines.job import Blob, Environment, run_id_of
from nightowl.machines.records import GenerationEnd, RunEnd, StageFailure
from tests.machines.jobs import NOW, RUN, a_beat, a_generation, a_job


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(FolderBucket(tmp_path), RUN)


def test_nothing_there_reads_as_none_or_empty(board: Board) -> None:
    assert board.job() is None and board.end() is None and board.newest_generation() is None and board.claim() is None
    assert board.beats() == [] and board.stage_ends() == [] and board.failures("train") == [] and list(board.logs({})) == []


def test_a_job_is_put_once_and_lists_as_a_run(board: Board, tmp_path: Path) -> None:
    assert board.put_job(a_job()) and board.put_job(a_job())
    assert not board.put_job(a_job(nodes=2))
    assert board.job() == a_job() and runs(FolderBucket(tmp_path)) == [RUN]


def test_of_two_nodes_that_open_one_generation_one_decides(board: Board) -> None:
    assert board.open_generation(a_generation(1, "i-1"))
    assert not board.open_generation(a_generation(1, "i-2"))
    newest = board.newest_generation()
    assert newest is not None and newest.rank_of("i-1") == 0 and newest.rank_of("i-2") is None


def test_the_newest_generation_is_the_one_with_the_highest_number_whether_ended_or_not(board: Board) -> None:
    for number in (1, 2, 10):
        board.open_generation(a_generation(number))
    assert board.end_generation(GenerationEnd(number=10, how="member_lost", message="m", at=NOW, by="i-1"))
    assert not board.end_generation(GenerationEnd(number=10, how="done", message="", at=NOW, by="i-2"))
    assert board.newest_generation() == a_generation(10)
    assert [end.how for end in board.generation_ends()] == ["member_lost"]


def test_a_heartbeat_takes_the_place_of_the_one_before(board: Board) -> None:
    beat = a_beat(state="booting")
    board.put_beat(beat)
    board.put_beat(beat.model_copy(update={"state": "ready"}))
    assert [each.state for each in board.beats()] == ["ready"]


def test_failures_come_in_the_order_of_generations(board: Board) -> None:
    for number in (2, 1):
        board.put_failure(
            StageFailure(stage="train", instance="i-1", generation=number, preempted=False, step=5, message="m", at=NOW)
        )
    assert [each.generation for each in board.failures("train")] == [1, 2] and board.failures("prepare") == []


def test_logs_are_read_on_from_where_one_was(board: Board) -> None:
    board.put_log("i-1", 0, "a\nb\n")
    board.put_log("i-1", 1, "c\n")
    board.put_log("i-2", 0, "d\n")
    assert [line.text for line in board.logs({})] == ["a", "b", "c", "d"]
    assert [line.text for line in board.logs({"i-1": 0, "i-2": 0})] == ["c"]


def test_how_a_run_ended_is_said_once(board: Board) -> None:
    assert board.put_end(RunEnd(how="done", message="", at=NOW))
    assert not board.put_end(RunEnd(how="failed", message="", at=NOW))
    end = board.end()
    assert end is not None and end.how == "done"


def test_a_record_that_cannot_be_read_is_named(board: Board) -> None:
    board.bucket.put("job.json", b"{}")
    with pytest.raises(RemoteError, match=r"job\.json: not readable as Job.run_id: Field required"):
        board.job()


def test_blobs_lie_under_their_digest(board: Board) -> None:
    blob = Blob(sha256="d" * 64, num_bytes=3)
    board.put_blob(blob, b"abc")
    assert board.blob(blob) == b"abc"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"min_nodes": 3, "nodes": 2}, "min_nodes: expected at most nodes = 2, got 3"),
        ({"heartbeat_seconds": 10, "heartbeat_old_seconds": 19}, "at least twice"),
        ({"run_id": "../x-0123456789abcdef"}, "run_id"),
        ({"stages": ()}, "stages"),
    ],
)
def test_a_job_that_cannot_be_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        a_job(**changes)


def test_an_environment_names_what_it_needs() -> None:
    with pytest.raises(ValidationError, match="an image with its digest"):
        Environment(kind="container", container="nightowl:latest")
    with pytest.raises(ValidationError, match="absolute path of an interpreter"):
        Environment(kind="baked")


def test_the_same_inputs_are_the_same_run() -> None:
    assert run_id_of("demo", "k", "c", "p") == run_id_of("demo", "k", "c", "p") != run_id_of("demo", "k", "c", "q")
    assert a_job(run_id=run_id_of("demo", "k", "c", "p"))


def test_a_status_knows_whether_it_is_over_and_remains_whether_they_are_nothing() -> None:
    assert RunStatus(run_id=RUN, state="poison").over and not RunStatus(run_id=RUN, state="waiting").over
    assert Remains().nothing and not Remains(instances=("i-1",)).nothing
