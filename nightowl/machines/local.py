"""The engine `detached`: the nodes of a run as processes of this machine, over a folder as their board.

It is the twin of rented machines: the same agent, heartbeats, generations and checkpoints. Its nodes outlive whoever started
them, as machines do, and end with the run or at its deadline. What runs that are over leave behind is bounded.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from nightowl.cloud.bucket import FolderBucket
from nightowl.errors import SettingsError
from nightowl.machines.board import CODE, Board, runs
from nightowl.machines.engine import Remains, RunStatus
from nightowl.machines.job import Job
from nightowl.machines.local_nodes import LocalNodes
from nightowl.machines.local_past import forgettable
from nightowl.machines.records import Cancel, LogLine, RunEnd
from nightowl.machines.reopen import reopen
from nightowl.machines.standing import standing

MAX_STARTS = 3
_END_SECONDS = 120.0


def _utc_now() -> datetime:
    return datetime.now(UTC)


class LocalEngine:
    """Boards and nodes lie below `folder`."""

    def __init__(self, folder: Path, now: Callable[[], datetime] = _utc_now) -> None:
        self._now = now
        self.bucket = FolderBucket(folder / "boards")
        self._nodes = LocalNodes(folder / "nodes")

    def submit(self, job: Job) -> str:
        """Begin the run, or adopt it. The code is on its board already. One that ended otherwise than done begins anew; runs of
        the same detector with other inputs end, as nobody will ask for them any more.

        Raises:
            SettingsError: the job is to end before it begins.
        """
        self._end_others(job)
        board = self.board(job.run_id)
        end, before = board.end(), board.job()
        if end is not None and end.how == "done":
            return job.run_id
        if end is not None or board.cancelled() or (before is not None and before.deadline <= self._now()):
            self.tear_down(job.run_id)
            reopen(board)
        if job.deadline <= self._now():
            raise SettingsError(
                f"{job.run_id}: it is to end by {job.deadline:%Y-%m-%d %H:%M} UTC, which has passed: see stop_at"
            )
        if board.job() is None:
            self._nodes.forget(job.run_id)  # of an earlier attempt, of which none is left
        board.put_job(job)
        self.renew(job.run_id)
        return job.run_id

    def renew(self, run_id: str) -> None:
        """Have as many nodes run as the job wants; one that died is replaced, as a group of rented machines would. Nodes that
        die again and again before they are ready end the run."""
        board = self.board(run_id)
        job = board.job()
        if job is None or board.end() or board.cancelled() or self._now() >= job.deadline:
            return
        for number in range(job.nodes):
            if self._nodes.pid(run_id, number) is not None:
                continue
            if self._hopeless(board, number):
                said = f"{MAX_STARTS} nodes could not start; the last: {self._nodes.last_words(run_id, number)}"
                board.put_end(RunEnd(how="poison", message=said, at=self._now()))
                return
            instance = f"local-{number}-{int(self._now().timestamp() * 1000):x}"
            self._nodes.start(run_id, number, self.bucket.root, board.bucket.get(CODE), instance)

    def status(self, run_id: str) -> RunStatus:
        return standing(self.board(run_id), self._now())

    def logs(self, run_id: str, after: Mapping[str, int]) -> Iterator[LogLine]:
        return self.board(run_id).logs(after)

    def cancel(self, run_id: str) -> None:
        self.board(run_id).put_cancel(Cancel(by=f"process {os.getpid()}", at=self._now()))

    def tear_down(self, run_id: str, patience_seconds: float = _END_SECONDS) -> Remains:
        """End the run's processes; those that do not leave in time are killed. What they worked in goes with them."""
        board = self.board(run_id)
        job = board.job()
        if job is not None and board.end() is None:
            late = self._now() >= job.deadline
            said = "its hard end has passed" if late else "torn down before it was done"
            board.put_end(RunEnd(how="deadline" if late else "cancelled", message=said, at=self._now()))
        left = self._nodes.end(run_id, patience_seconds)
        if not left:
            self._nodes.tidy(run_id)
            self._forget_old(run_id)
        return Remains(instances=tuple(f"process {pid}" for pid in left))

    def node_pid(self, run_id: str, number: int) -> int | None:
        """The process of a node; None when none runs."""
        return self._nodes.pid(run_id, number)

    def runs(self) -> list[RunStatus]:
        """All that are remembered, in order of their ids."""
        return [self.status(run_id) for run_id in runs(self.bucket)]

    def board(self, run_id: str) -> Board:
        return Board(self.bucket, run_id)

    def _end_others(self, job: Job) -> None:
        for other in runs(self.bucket):
            board = self.board(other)
            before = board.job()
            if other != job.run_id and before is not None and before.detector == job.detector and board.end() is None:
                board.put_end(RunEnd(how="cancelled", message=f"{job.run_id} was asked for in its place", at=self._now()))
                self.tear_down(other)

    def _hopeless(self, board: Board, number: int) -> bool:
        ready = {beat.instance for beat in board.beats() if beat.state != "booting"}
        last = self._nodes.begun(board.run_id, number)[-MAX_STARTS:]
        return len(last) == MAX_STARTS and not ready.intersection(last)

    def _forget_old(self, but: str) -> None:
        for run_id in forgettable(self.bucket, but):
            if not self._nodes.alive(run_id):
                self._nodes.forget(run_id)
                self.bucket.under(f"runs/{run_id}").remove()
