import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightowl.cloud.bucket import FolderBucket
from nightowl.cloud.metadata import SpotWatcher
from nightowl.errors import DataError, RemoteError, UserError, WeightsError
from nightowl.files import sha256_bytes
from nightowl.machines.agent import Ears, Place, hear_wish, restore, run_node, settings_for
from nightowl.machines.board import Board
from nightowl.machines.diary import Diary
from nightowl.machines.job import Blob, Environment
from nightowl.machines.outlook import Clock
from nightowl.machines.records import Event, RunEnd
from nightowl.settings import Settings
from tests.machines.jobs import NOW, RUN, a_beat, a_job

BLOB = Blob(sha256=sha256_bytes(b"weights"), num_bytes=7)


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(FolderBucket(tmp_path / "board"), RUN)


@pytest.fixture(autouse=True)
def variables() -> Iterator[None]:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def settings(folder: Path, source: str) -> Settings:
    return Settings(home=folder / "state", sources={"demo": source})


def test_weights_come_from_the_board_by_their_digest_and_data_from_its_source(tmp_path: Path, board: Board) -> None:
    board.put_blob(BLOB, b"weights")
    pulled: list[str] = []
    for _ in range(2):
        restore(
            board,
            a_job(blobs=(BLOB,)),
            settings(tmp_path, "s3://data/demo"),
            lambda _, name, url: pulled.append(f"{name} {url}"),
        )
    assert (tmp_path / "state" / "blobs" / BLOB.sha256).read_bytes() == b"weights"
    assert pulled == ["demo s3://data/demo"] * 2


def test_a_folder_is_read_where_it_lies(tmp_path: Path, board: Board) -> None:
    restore(board, a_job(), settings(tmp_path, str(tmp_path)), lambda *_: pytest.fail("nothing to pull"))
    with pytest.raises(DataError, match="no such folder on this node"):
        restore(board, a_job(), settings(tmp_path, str(tmp_path / "absent")), lambda *_: None)


@pytest.mark.parametrize(("content", "said"), [(None, "not there"), (b"others", "altered")])
def test_weights_that_are_not_what_was_pinned_are_refused(
    tmp_path: Path, board: Board, content: bytes | None, said: str
) -> None:
    if content is not None:
        board.put_blob(BLOB, content)
    with pytest.raises(WeightsError, match=said):
        restore(board, a_job(blobs=(BLOB,)), settings(tmp_path, "s3://data/demo"), lambda *_: None)
    assert list((tmp_path / "state").rglob("*")) in ([], [tmp_path / "state" / "blobs"])


def test_the_settings_of_a_node_are_the_jobs_with_folders_of_its_own(tmp_path: Path) -> None:
    job = a_job(
        settings={
            "NIGHTOWL_SOURCES": '{"demo": "dvc:data/demo"}',
            "NIGHTOWL_CHECKPOINTS": "s3://b/c",
        }
    )
    found = settings_for(job, Place(tmp_path / "tree", tmp_path))
    assert found.home == tmp_path / "state" and found.checkpoints == "s3://b/c"
    assert found.checkpoint_request == tmp_path / "checkpoint.request"
    assert found.sources == {"demo": f"dvc:{tmp_path}/tree/data/demo"}


def test_a_home_that_the_job_names_is_that_of_the_node(tmp_path: Path) -> None:
    job = a_job(settings={"NIGHTOWL_HOME": str(tmp_path / "ours"), "NIGHTOWL_SOURCES": f'{{"demo": "dvc:{tmp_path}/images"}}'})
    found = settings_for(job, Place(tmp_path / "tree", tmp_path))
    assert found.home == tmp_path / "ours" and found.sources == {"demo": f"dvc:{tmp_path}/images"}


def test_a_node_of_the_nights_own_machine_reads_what_the_night_pulled(tmp_path: Path, board: Board) -> None:
    job = a_job(environment=Environment(kind="here"))
    restore(board, job, settings(tmp_path, "s3://data/demo"), lambda *_: pytest.fail("it is here, and pinned"))


def test_the_file_that_asks_to_stop_ends_the_run(tmp_path: Path, board: Board) -> None:
    stop = tmp_path / "stop"
    asked = Settings(home=tmp_path, stop_notice=stop)
    hear_wish(asked, board, Clock())
    assert board.cancelled() is None
    stop.write_text("the shift begins\n")
    hear_wish(asked, board, Clock())
    wish = board.cancelled()
    assert wish is not None and "the shift begins" in wish.by


@pytest.mark.parametrize(("told", "listens"), [({}, False), ({"NIGHTOWL_SPOT_NOTICES": "true"}, True)])
def test_the_node_listens_to_the_metadata_service_and_its_stages_do_not(
    tmp_path: Path, board: Board, monkeypatch: pytest.MonkeyPatch, told: dict[str, str], listens: bool
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(SpotWatcher, "look", lambda self: asked.append("look"))
    monkeypatch.setattr(SpotWatcher, "rebalance", lambda self: None)
    board.put_job(a_job(heartbeat_seconds=0.05, settings=told))
    board.put_end(RunEnd(how="done", message="", at=NOW))
    run_node(board, a_beat(), Place(tmp_path, tmp_path), None, lambda *_: None, lambda _: None)
    assert bool(asked) is listens


def test_a_signal_is_a_notice(tmp_path: Path) -> None:
    ears = Ears(None)
    with ears.listening():
        assert ears.look() is None and ears.rebalance() is None
        os.kill(os.getpid(), signal.SIGTERM)
        assert ears.look() == "asked to stop (SIGTERM)"


def test_a_node_of_a_run_that_is_over_restores_nothing_and_leaves_for_good(tmp_path: Path, board: Board) -> None:
    board.put_job(a_job(heartbeat_seconds=0.05))
    board.put_end(RunEnd(how="done", message="", at=NOW))
    left: list[bool] = []
    run_node(board, a_beat(), Place(tmp_path, tmp_path), None, lambda *_: pytest.fail("nothing to pull"), left.append)
    assert left == [True]
    assert [beat.state for beat in board.beats()] == ["gone"]
    assert "leaving: the run is over: done" in [line.text for line in board.logs({})]


def test_a_run_that_does_not_exist_is_said(tmp_path: Path, board: Board) -> None:
    with pytest.raises(UserError, match="no run there"):
        run_node(board, a_beat(), Place(tmp_path, tmp_path), None, lambda *_: None, lambda _: None)


def test_a_diary_puts_each_line_and_event_once_and_goes_on_where_a_process_before_it_was(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        diary = Diary(board, "i-1", lambda: NOW)
        diary.say(f"line {number}")
        diary.span("waiting", NOW)
        diary.flush()
        diary.flush()
    assert [(line.number, line.text) for line in board.logs({})] == [(0, "line 0"), (1, "line 1")]
    assert board.events() == [Event(instance="i-1", kind="waiting", start=NOW, end=NOW)] * 2


def test_what_cannot_be_put_is_kept_and_put_later(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    diary = Diary(board, "i-1", lambda: NOW)
    diary.say("first")
    with monkeypatch.context() as cut:
        cut.setattr(board, "put_log", lambda *_: (_ for _ in ()).throw(RemoteError("no route")))
        diary.try_flush()
    diary.say("second")
    diary.flush()
    assert [line.text for line in board.logs({})] == ["first", "second"]
