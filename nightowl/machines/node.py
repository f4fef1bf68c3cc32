"""The node agent: looks at the board, asks `decide` what is next, does it, and looks again, until it leaves.

A thread puts its heartbeat. Nothing here waits for long, so that a notice is heard within seconds; and nothing is remembered
that the board does not hold, but how long things have been as they are.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from nightowl.errors import RemoteError
from nightowl.machines.assignment import Assignment, spans, taken_before
from nightowl.machines.board import Board
from nightowl.machines.diary import Diary
from nightowl.machines.job import Job
from nightowl.machines.outlook import Clock, Outlook
from nightowl.machines.records import GenerationEnd, NodeBeat, NodeState, RunEnd, StageEnd, StageFailure
from nightowl.machines.supervise import (
    HOPELESS_SECONDS,
    TOGETHER,
    Action,
    Begin,
    CloseGeneration,
    CloseRun,
    Finish,
    Leave,
    Open,
    Stop,
    View,
    Wait,
    Work,
    decide,
)
from nightowl.machines.worker import Worker


class Watch(Protocol):
    """What knows whether this machine is to be taken back; see SpotWatcher."""

    def look(self) -> str | None: ...

    def rebalance(self) -> str | None: ...


class Node:
    """One machine's part in a run. `me` is its heartbeat as it begins; `leave(decrement)` ends the machine."""

    def __init__(
        self,
        job: Job,
        board: Board,
        me: NodeBeat,
        worker: Worker,
        watch: Watch,
        diary: Diary,
        leave: Callable[[bool], None],
        clock: Clock,
    ) -> None:
        self._job, self._board, self._worker, self._watch, self._diary, self._leave = job, board, worker, watch, diary, leave
        self._clock, self._outlook = clock, Outlook(job, board, me.instance, clock)
        self._me, self._beating = me, threading.Lock()
        self._given: Assignment | None = None
        self._notice: str | None = None
        self._recommended: str | None = None
        self._cut_since: float | None = None
        self._lost: str | None = None
        self._said = ""

    def beat(self) -> None:
        """Put a heartbeat; may be called from another thread."""
        if self._lost is not None:
            return
        with self._beating:
            self._me = self._me.model_copy(update={"at": self._clock.now(), **self._steps()})
            with suppress(RemoteError, OSError):  # looking at the board meets the same, and decides what it means
                self._board.put_beat(self._me)

    def be(self, state: NodeState, said: str = "") -> None:
        """Change what the heartbeat says, and put one at once."""
        work = self._given.work if self._given else None
        told = {"generation": work.generation, "stage": work.stage if self._working() else None} if work else {}
        with self._beating:
            self._me = self._me.model_copy(update={"state": state, "said": said, **told})
        self.beat()

    def notice(self, said: str) -> None:
        """This machine is to go; the first reason stays."""
        if self._notice is None:
            self._notice = said
            self._diary.say(f"notice: {said}")
            self._diary.span("notice", self._clock.now(), said=said)

    @property
    def unheard(self) -> bool:
        """Whether it leaves without the board, which does not answer."""
        return self._lost is not None

    def tick(self) -> bool:
        """Look, decide, act; False when the node has left."""
        self._hear()
        self._see_work()
        if self._lost is not None:  # nothing more is asked of the board: each answer would be waited for in vain
            return self._working() or self._go_unheard(self._lost)
        began = self._clock.seconds()
        try:
            view = self._outlook.look(self._given.aged(self._clock.seconds()) if self._given else None, self._notice)
            going = self._do(decide(view), view)
        except (RemoteError, OSError) as error:
            return self._without_board(error, began)
        self._cut_since = None
        return going

    def _hear(self) -> None:
        said = self._watch.look()
        if said is not None:
            self.notice(said)
        recommended = self._watch.rebalance()
        if recommended is not None and recommended != self._recommended:
            self._recommended = recommended
            self._diary.say(f"EC2 recommends to leave this machine (since {recommended}): a checkpoint is asked for")
            self._worker.request_checkpoint()

    def _working(self) -> bool:
        return self._given is not None and self._given.running

    def _see_work(self) -> None:
        """What has become of the work since the last look."""
        given = self._given
        if given is None or not given.running:
            return
        ended = self._worker.ended()  # first: what is asked for afterwards is all that it did
        now, steps = self._clock.now(), self._worker.steps()
        if given.leads_training and given.steps_at is None and steps is not None:
            self._given = given = replace(given, steps_at=now)
        if ended is None:
            return
        self._diary.note(*spans(self._me.instance, given, steps, now))
        self._diary.say(f"{given.work.stage}: {ended.how}{f': {ended.message}' if ended.message else ''}")
        self._given = replace(
            given, work=replace(given.work, how=ended.how, message=ended.message), ended_at=self._clock.seconds()
        )
        if self._notice is None:
            self.be("ready", f"{given.work.stage}: {ended.how}")
        else:  # nobody may count on it between now and its leaving
            self.be("leaving", self._notice)

    def _do(self, action: Action, view: View) -> bool:
        match action:
            case Wait(said):
                self._tell(said)
            case Open(generation):
                if self._board.open_generation(generation):
                    members = ", ".join(f"{member.rank}: {member.instance}" for member in generation.members)
                    self._diary.say(f"generation {generation.number} ({generation.reason}): {members}")
            case Begin():
                self._begin(action, view)
            case Stop(patience_seconds, said):
                self._tell(f"stopping: {said}")
                if self._given is not None and self._given.stop_at is None:
                    self._given = replace(self._given, stop_at=self._clock.now())
                self._worker.stop(patience_seconds)
            case CloseGeneration():
                self._close_generation(action, view)
            case Finish(stage):
                self._finish(stage)
            case CloseRun(how, message):
                self._diary.say(f"the run ends: {how}{f': {message}' if message else ''}")
                self._board.put_end(RunEnd(how=how, message=message, at=self._clock.now()))
            case Leave(decrement, said):
                self._go(decrement, said)
                return False
        return True

    def _begin(self, action: Begin, view: View) -> None:
        stage, number = action.stage, action.generation.number
        self._diary.say(f"{stage}: begun as rank {action.rank} of generation {number}")
        self._diary.span("waiting", self._outlook.free_since, generation=number)
        before = taken_before(view.sights) if action.rank == 0 and stage == TOGETHER else None
        self._worker.begin(stage, action.generation, action.rank)
        self._given = Assignment(Work(stage, number), action.rank, self._clock.now(), before)
        self.be("training" if stage == TOGETHER else "running")

    def _close_generation(self, action: CloseGeneration, view: View) -> None:
        assert view.newest is not None, "it decided so"
        now, number = self._clock.now(), view.newest.number
        self._diary.say(f"generation {number} ends: {action.how}: {action.message}")
        if view.stage is not None:
            self._board.put_failure(
                StageFailure(
                    stage=view.stage,
                    instance=self._me.instance,
                    generation=number,
                    preempted=action.how != "failed",
                    step=max((s.beat.step for s in view.sights.values() if s.beat.step is not None), default=None),
                    message=action.message,
                    at=now,
                )
            )
        if action.how == "member_lost":
            self._diary.span("lost", now, stage=view.stage, generation=number, said=action.message)
        self._board.end_generation(
            GenerationEnd(number=number, how=action.how, message=action.message, at=now, by=self._me.instance)
        )

    def _finish(self, stage: str) -> None:
        given, ended, now = self._given, self._worker.ended(), self._clock.now()
        assert given is not None and ended is not None, "it decided so"
        self._board.put_stage_end(
            StageEnd(
                stage=stage,
                executed=ended.executed,
                seconds=(now - given.at).total_seconds(),
                instance=self._me.instance,
                generation=given.work.generation,
                lock=ended.lock,
                at=now,
            )
        )

    def _go(self, decrement: bool, said: str) -> None:
        self._diary.say(f"leaving: {said}")
        self._diary.span("left", self._clock.now(), said=said)
        self.be("leaving", said)
        self._diary.try_flush()
        self.be("gone", said)
        self._leave(decrement)

    def _go_unheard(self, said: str) -> bool:
        """Leave without a word to the board, which does not answer."""
        self._diary.say(f"leaving: {said}")
        self._leave(False)
        return False

    def _without_board(self, error: Exception, began: float) -> bool:
        """The board has not answered since `began`: the others will take this node for lost, so after a while its work is in
        vain, and so is waiting for the board."""
        self._cut_since = began if self._cut_since is None else self._cut_since
        cut_seconds = self._clock.seconds() - self._cut_since
        self._tell(f"the board does not answer: {error}")
        if cut_seconds > 2 * self._job.heartbeat_old_seconds:
            self._lost = f"the board has not answered for {cut_seconds:.0f} s"
            if self._working():
                self._worker.stop(HOPELESS_SECONDS)
        return True

    def _steps(self) -> dict[str, int | None]:
        """Of the training that this node leads; of one that is over, what was told last stays."""
        if not self._working() or self._given is None or not self._given.leads_training:
            return {}
        committed, steps = self._worker.committed(), self._worker.steps()
        taken = None if steps is None else max(steps.last, committed or 0)  # it is noted a moment after it was taken
        return {"step": committed, "taken": taken}

    def _tell(self, said: str) -> None:
        if said and said != self._said:
            self._diary.say(said)
            self._said = said
