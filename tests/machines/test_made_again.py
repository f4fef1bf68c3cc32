"""A run that an earlier night has done is adopted; where its result was deleted since, it is made again, once."""

import shutil
from collections.abc import Iterator, Mapping
from hashlib import md5
from pathlib import Path

import pytest

from nightowl.cloud.bucket import FolderBucket
from nightowl.cloud.dvc_config import read_config
from nightowl.errors import StageFailed
from nightowl.machines.board import Board
from nightowl.machines.engine import Remains, RunStatus
from nightowl.machines.job import Job
from nightowl.machines.records import LogLine, RunEnd, StageEnd
from nightowl.machines.spot_site import RentedMachines
from nightowl.machines.standing import standing
from nightowl.night.record import Night
from tasks import machines
from tests.cloud.tracked import list_of, remote_objects
from tests.machines.jobs import NOW
from tests.night import test_order
from tests.night.test_order import REMOTE, a_night, config

STAGES = "stages: {train: {foreach: [demo], do: {cmd: x, deps: []}}, gate: {foreach: [demo], do: {cmd: x, deps: []}}}\n"


class Nodes:
    """An engine whose nodes are done at once: they push what they make, or lose it."""

    def __init__(self, boards: FolderBucket, remote: Path) -> None:
        self.boards, self.remote, self.runs, self.loses = boards, remote, 0, False

    def submit(self, job: Job) -> str:
        board = self.board(job.run_id)
        if board.end() is None:
            assert board.put_job(job), "what stood of the earlier attempt is forgotten"
            assert board.stage_ends() == []
            self.runs += 1
            self.make(board)
            board.put_end(RunEnd(how="done", message="", at=NOW))
        return job.run_id

    def make(self, board: Board) -> None:
        files = {"best.pt": f"weights {self.runs}".encode()}
        for key, content in {} if self.loses else remote_objects(files).items():
            (self.remote / key).parent.mkdir(parents=True, exist_ok=True)
            (self.remote / key).write_bytes(content)
        made = f"{{path: out/demo/train, hash: md5, md5: {md5(list_of(files)).hexdigest()}.dir}}"
        lock = f"stages: {{train@demo: {{cmd: x, outs: [{made}]}}}}"
        board.put_stage_end(StageEnd(stage="train", executed=True, seconds=1, instance="i-1", generation=1, lock=lock, at=NOW))

    def board(self, run_id: str) -> Board:
        return Board(self.boards, run_id)

    def renew(self, run_id: str) -> None:
        pass

    def status(self, run_id: str) -> RunStatus:
        return standing(self.board(run_id), NOW)

    def logs(self, run_id: str, after: Mapping[str, int]) -> Iterator[LogLine]:
        return iter(())

    def cancel(self, run_id: str) -> None:
        raise AssertionError("nobody wished it")

    def tear_down(self, run_id: str) -> Remains:
        return Remains()


root = test_order.root  # the fixture: a checkout with settings for rented machines


@pytest.fixture
def night(root: Path) -> Night:
    (root / "dvc.yaml").write_text(STAGES)
    return a_night(root)


@pytest.fixture
def nodes(night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    """Its remote is S3 to the order, and a folder here."""
    nodes = Nodes(FolderBucket(tmp_path / "boards"), tmp_path / "remote")
    monkeypatch.setattr(RentedMachines, "engine", lambda self: nodes)
    monkeypatch.setattr(RentedMachines, "boards", lambda self: nodes.boards)
    monkeypatch.setattr(machines, "keep_account", lambda night, site, board: None)
    place = REMOTE.replace("s3://lines/dvc", str(nodes.remote))
    monkeypatch.setattr("nightowl.machines.spot_site.read_config", lambda checkout: _as(checkout, REMOTE))
    config(night.tree, place)
    return nodes


def _as(checkout: Path, text: str) -> object:
    elsewhere = checkout.parent / "as-seen-by-the-order"
    config(elsewhere, text)
    return read_config(elsewhere)


def forget(nodes: Nodes, night: Night, remote: bool) -> None:
    shutil.rmtree(night.tree / ".dvc" / "cache")
    if remote:
        shutil.rmtree(nodes.remote)


def test_what_is_done_needs_no_machine_while_the_shared_cache_has_it(nodes: Nodes, night: Night) -> None:
    for _ in range(2):
        assert machines.run_on_machines.fn(night) == ("train",)
        forget(nodes, night, remote=False)
    assert nodes.runs == 1


def test_what_was_deleted_since_is_made_again_once(nodes: Nodes, night: Night, capsys: pytest.CaptureFixture[str]) -> None:
    machines.run_on_machines.fn(night)
    forget(nodes, night, remote=True)
    capsys.readouterr()
    assert machines.run_on_machines.fn(night) == ("train",)
    assert nodes.runs == 2
    lacks = f"an earlier night has done it, but the DVC remote {nodes.remote} lacks what train made: it is made again"
    assert capsys.readouterr().out.count(lacks) == 1
    forget(nodes, night, remote=False)
    machines.run_on_machines.fn(night)
    assert nodes.runs == 2, "and then it is there"


@pytest.mark.parametrize("adopted", [False, True])
def test_what_this_night_made_and_cannot_be_had_is_an_error_and_costs_no_more(
    nodes: Nodes, night: Night, adopted: bool
) -> None:
    if adopted:
        machines.run_on_machines.fn(night)
        forget(nodes, night, remote=True)
    nodes.loses = True
    with pytest.raises(StageFailed, match=r"^demo-\w+: done, but the DVC remote .* lacks what train made: was it deleted"):
        machines.run_on_machines.fn(night)
    assert nodes.runs == 1 + adopted
