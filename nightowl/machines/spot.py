"""The engine `ec2`: a run on spot machines of an Auto Scaling group, which AWS keeps alive and ends by itself.

Every verb looks at what is there and does what is missing, so that a call which was cut off anywhere is simply made again, by
whomever. A crash tears nothing down: the next call adopts, and until then the lease bounds what it costs.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from nightowl.cloud.bucket import Bucket
from nightowl.cloud.ec2_errors import explain_capacity
from nightowl.cloud.ec2_groups import Group, activities
from nightowl.cloud.ec2_session import Aws
from nightowl.errors import RemoteError, SettingsError, UserError
from nightowl.machine_settings import MachineSettings
from nightowl.machines import full_price
from nightowl.machines.board import Board
from nightowl.machines.engine import Remains, RunStatus
from nightowl.machines.job import Job
from nightowl.machines.lease import Lease
from nightowl.machines.pace import recall, remember
from nightowl.machines.records import Cancel, Claim, LogLine, RunEnd
from nightowl.machines.reopen import reopen
from nightowl.machines.spot_machines import SpotMachines
from nightowl.machines.spot_plan import Existing, plan
from nightowl.machines.standing import standing
from nightowl.machines.sweep import sweep


def _utc_now() -> datetime:
    return datetime.now(UTC)


class SpotEngine:
    """`user_data` writes what a machine runs when it boots; `check` raises what would stand in the way of a new run."""

    def __init__(
        self,
        settings: MachineSettings,
        aws: Aws,
        boards: Bucket,
        user_data: Callable[[Job], str],
        check: Callable[[], object] = lambda: None,
        now: Callable[[], datetime] = _utc_now,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._settings, self._aws, self._boards = settings, aws, boards
        self._check, self._now, self._sleep = check, now, sleep
        self._machines = SpotMachines(settings, aws, user_data, sleep)
        self._ends_at: dict[str, datetime] = {}  # of leases that this process took

    def submit(self, job: Job) -> str:
        """Begin the run, or adopt it where it exists. One that is done already is left as it is; one that ended otherwise
        begins anew. Raises UserError or RemoteError, before anything is created where that can be known."""
        ours = self._opened(job)
        if ours is not None:
            existing = self._machines.look(job.run_id)
            if existing.nothing:
                self._check()
            self._bring_about(ours, existing)
        return job.run_id

    def renew(self, run_id: str) -> None:
        """Push the end of the machines on, when that is due: whoever drives the run says so at every poll. A lease that ran
        out while the driver slept is taken again, with its machines."""
        job, board = self._job(run_id), self._board(run_id)
        lease, now = self._lease(job), self._now()
        if not lease.due(self._ends_at.get(run_id), now) or now >= job.deadline or board.end() or board.cancelled():
            return
        existing = self._machines.look(run_id)
        if existing.group is None:
            return
        if existing.end_at is None:
            self._bring_about(job, existing)
        else:
            self._claim(run_id)
            self._machines.extend(existing.group, lease.end(now))
            self._ends_at[run_id] = lease.end(now)
        self._keep_promise(job, existing.group)

    def status(self, run_id: str) -> RunStatus:
        """How the run is; while it waits, what AWS said to the last machine that it could not start."""
        status = standing(self._board(run_id), self._now())
        if status.state != "waiting":
            return status
        group = self._machines.group(run_id)
        if group is None:
            return status.model_copy(update={"message": "it has no machines: submit it again"})
        failed = next((each for each in activities(self._aws, group.name) if each.failed), None)
        said = "waiting for a machine"
        if failed:
            said = f"no machine yet: {explain_capacity(failed.message) or failed.message}"
        return status.model_copy(update={"message": said})

    def logs(self, run_id: str, after: Mapping[str, int]) -> Iterator[LogLine]:
        return self._board(run_id).logs(after)

    def cancel(self, run_id: str) -> None:
        """Have the run end soon: its nodes commit and leave. `tear_down` then ends what is left."""
        self._job(run_id)
        self._board(run_id).put_cancel(Cancel(by=_holder(), at=self._now()))

    def tear_down(self, run_id: str) -> Remains:
        """End everything that carries the run's tag, and count until it is nothing. A run that had not ended is over by it."""
        board, now = self._board(run_id), self._now()
        job = board.job()
        if job is not None:
            late = now >= job.deadline
            said = "its hard end has passed" if late else "its machines were taken down before it was done"
            board.put_end(RunEnd(how="deadline" if late else "cancelled", message=said, at=now))  # unless it had ended before
            end = board.end()
            if end is not None and end.how == "done":
                remember(self._boards, board, job)
        return sweep(self._aws, run_id, sleep=self._sleep)

    def _opened(self, job: Job) -> Job | None:
        """The job that stands on the board, ours or an earlier one of the run; None when it is done."""
        board = self._board(job.run_id)
        end, before = board.end(), board.job()
        if end is not None and end.how == "done":
            return None
        if end is not None or (before is not None and before.deadline <= self._now()):
            remains = self.tear_down(job.run_id)
            if not remains.nothing:
                raise RemoteError(f"{job.run_id}: machines of its earlier attempt are not gone yet: try again in some minutes")
            reopen(board)
        if job.deadline <= self._now():
            raise SettingsError(
                f"{job.run_id}: its deadline {job.deadline:%Y-%m-%d %H:%M} UTC has passed: raise machines.max_hours"
            )
        board.put_job(job)
        return self._job(job.run_id)

    def _bring_about(self, job: Job, existing: Existing) -> None:
        """Have the run's machines there, with a lease that is taken now."""
        self._claim(job.run_id)
        until, dear = self._lease(job).end(self._now()), self._is_dear(job.run_id)
        for step in plan(existing, job.nodes, until):
            self._machines.take(step, job, until, dear)
        self._ends_at[job.run_id] = until

    def _keep_promise(self, job: Job, group: Group) -> None:
        """Go over to full price when spot would miss the time at which the result is wanted, and that is allowed."""
        settings, board, now = self._settings, self._board(job.run_id), self._now()
        if settings.on_demand == "never" or not settings.done_by or group.full_price:
            return
        pace = recall(self._boards, job)
        decision = full_price.consider(board, job, settings.done_by, pace, len(group.instances), now)
        if decision.full_price:
            full_price.keep(self._aws, board, settings, self._machines.zone(), decision.reason, now)
            self._machines.take("capacity", job, self._lease(job).end(now), full_price=True)

    def _is_dear(self, run_id: str) -> bool:
        return full_price.full_price_of(self._board(run_id)) is not None

    def _claim(self, run_id: str) -> None:
        self._board(run_id).put_claim(Claim(holder=_holder(), at=self._now()))

    def _job(self, run_id: str) -> Job:
        job = self._board(run_id).job()
        if job is None:
            raise UserError(f"{self._boards.url}: no run {run_id!r} there")
        return job

    def _lease(self, job: Job) -> Lease:
        return Lease(timedelta(minutes=self._settings.lease_minutes), job.deadline)

    def _board(self, run_id: str) -> Board:
        return Board(self._boards, run_id)


def _holder() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
