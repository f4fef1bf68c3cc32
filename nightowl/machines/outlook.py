"""What a node sees when it looks at the board, with how long things have been as they are."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from nightowl.machines.board import Board
from nightowl.machines.generations import Lookout
from nightowl.machines.job import Job
from nightowl.machines.supervise import TOGETHER, View, Work


@dataclass(frozen=True)
class Clock:
    """`now` is the time of day; `seconds` only goes forward."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    seconds: Callable[[], float] = time.monotonic


def first_open(job: Job, board: Board) -> str | None:
    """The first stage of the job that has not ended; None when all have."""
    ends = {end.stage for end in board.stage_ends()}
    return next((stage for stage in job.stages if stage not in ends), None)


class Outlook:
    """Looks at the board for the node `me`."""

    def __init__(self, job: Job, board: Board, me: str, clock: Clock) -> None:
        self._job, self._board, self._me, self._clock = job, board, me, clock
        self._lookout = Lookout()
        self._progress: object = None
        self._moved_at = self._free_at = clock.seconds()
        self.free_since = clock.now()

    def look(self, work: Work | None, notice: str | None) -> View:
        """Raises RemoteError, OSError when the board cannot be read."""
        board, at, now = self._board, self._clock.seconds(), self._clock.now()
        stage = first_open(self._job, board)
        newest = board.newest_generation()
        newest_end = board.generation_end(newest.number) if newest else None
        sights = self._lookout.look(board.beats(), at)
        between = newest is None or newest_end is not None
        if not between or (work is not None and work.how is None):
            self._free_at, self.free_since = at, now
        progress = (stage, max((sight.beat.step or 0 for sight in sights.values()), default=0))
        if progress != self._progress or (not between and stage != TOGETHER):
            self._progress, self._moved_at = progress, at
        return View(
            job=self._job,
            me=self._me,
            now=now,
            end=board.end(),
            cancel=board.cancelled(),
            newest=newest,
            newest_end=newest_end,
            stage=stage,
            failures=board.failures(stage) if stage and between else (),
            sights=sights,
            work=work,
            notice=notice,
            waited_seconds=at - self._free_at,
            quiet_seconds=at - self._moved_at,
        )
