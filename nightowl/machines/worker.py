"""What a node runs: a stage of the run, as rank 0 by DVC, or as a further host of the training; begun, watched and stopped.

Rank 0 also pushes what the stage made, and only then is the stage done: what lies on a rented node alone is lost with it. The
work runs in a thread, so that the node goes on looking at the board.
"""

import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from nightowl.checkpoint.copies import commit_names, read_commit
from nightowl.checkpoint.place import places
from nightowl.cloud.bucket import ObjectMissing
from nightowl.errors import CheckpointError, Interrupted, NightowlError, Preempted, StageFailed
from nightowl.machines.records import Generation
from nightowl.machines.supervise import TOGETHER
from nightowl.processes import lines, wait
from nightowl.settings import Settings
from nightowl.stages import repro
from nightowl.stages.workspace import Workspace
from nightowl.training.steps_taken import Steps, steps_taken

_BEFORE = "prepare"  # what a further host needs of the stages before the training
_LAST_LINES_SECONDS = 5
_NOBODY = "none"  # no stage of this name: what is missing in the cache is not made


class Ended(NamedTuple):
    """How a work ended. `lock`: what DVC then recorded of all stages, where rank 0 brought one about."""

    how: Literal["done", "preempted", "failed"]
    message: str
    executed: bool
    lock: str = ""


class Worker(Protocol):
    """One piece of work at a time."""

    def begin(self, stage: str, generation: Generation, rank: int) -> None: ...

    def ended(self) -> Ended | None:
        """How the work ended; None while it runs."""

    def stop(self, patience_seconds: float) -> None:
        """Have the work save and end, and end it after a while. Returns at once; asking again changes nothing."""

    def request_checkpoint(self) -> None: ...

    def steps(self) -> Steps | None:
        """Of the training that runs or ran here in this generation."""

    def committed(self) -> int | None:
        """The newest step that is committed here."""


@dataclass
class StageWorker:
    """Runs the stages of `workspace`, on `nproc` ranks. `sweep` ends whatever the processes of a work leave behind. `shares`:
    there is a DVC remote to pull from and push to. `lasts`: what is made lasts without being pushed, as this node's cache is
    that of the checkout."""

    workspace: Workspace
    nproc: int
    say: Callable[[str], None]
    sweep: Callable[[], object]
    shares: bool = True
    lasts: bool = False

    def __post_init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._leader: Path | None = None
        self._ended: Ended | None = None
        self._patience_seconds: float | None = None  # once asked to stop
        self._stopper: threading.Thread | None = None  # of the process that runs
        self._lock = threading.Lock()

    def begin(self, stage: str, generation: Generation, rank: int) -> None:
        workspace = self._in(generation, rank) if stage == TOGETHER else self.workspace
        if stage == TOGETHER:
            workspace.steps_taken.unlink(missing_ok=True)
        self._ended, self._patience_seconds = None, None
        work = self._lead if rank == 0 else self._join
        threading.Thread(target=self._run, args=(work, workspace, stage), name=f"work {stage}", daemon=True).start()

    def ended(self) -> Ended | None:
        return self._ended

    def stop(self, patience_seconds: float) -> None:
        with self._lock:
            if not self._stopping:
                self._patience_seconds = patience_seconds
                self._stop_what_runs()

    def request_checkpoint(self) -> None:
        path = self.workspace.settings.checkpoint_request
        assert path is not None, "the node's settings name one"
        path.touch()

    def steps(self) -> Steps | None:
        return steps_taken(self.workspace.steps_taken)

    def committed(self) -> int | None:
        steps = self.steps()
        return max(
            (
                step
                for step in (newest_step(self.workspace.settings, self.workspace.detector), steps and steps.first)
                if step is not None
            ),
            default=None,
        )

    def _in(self, generation: Generation, rank: int) -> Workspace:
        """The workspace with the settings of one node of a generation."""
        hosts = {
            "nproc": self.nproc,
            "nnodes": len(generation.members),
            "node_rank": rank,
            "rendezvous": f"{generation.members[0].address}:{generation.port}",
        }
        here = self.workspace
        return Workspace(here.root, here.detector, here.settings.model_copy(update=hosts))

    def _run(self, work: Callable[[Workspace, str], Ended], workspace: Workspace, stage: str) -> None:
        try:
            ended = work(workspace, stage)
        except Preempted as error:
            ended = Ended("preempted", str(error), True)
        except NightowlError as error:
            ended = Ended("preempted" if self._stopping else "failed", str(error), True)
        except Exception as error:  # noqa: BLE001  the border of the work: whatever it was, the node must hear of it
            ended = Ended("failed", f"{stage}: {type(error).__name__}: {error}", True)
        self.sweep()
        self._ended = ended

    def _lead(self, workspace: Workspace, stage: str) -> Ended:
        """Bring the stage about and push it."""
        repro.forget(workspace, stage)
        code = self._follow(repro.repro(workspace, stage, pull=self.shares, piped=True), workspace.leader(stage))
        if self._stopping and code != 0 and repro.read_outcome(workspace.outcome(stage)) is None:
            raise Interrupted("asked to stop")  # before it began, or ended without a word
        error = repro.failure(workspace, stage, code)
        if error is not None:
            raise error
        executed = workspace.outcome(stage).exists()
        if self.shares and self._follow(repro.push(workspace, stage, piped=True), None) != 0:
            what = f"{stage}@{workspace.detector}: its outputs could not be pushed to the DVC remote"
            if not self.lasts:
                raise StageFailed(f"{what}; see the log")
            self.say(f"{what}; they are in the local cache")
        return Ended("done", "", executed, (workspace.root / "dvc.lock").read_text(encoding="utf-8"))

    def warm_up(self) -> None:
        """Have ready what a training needs here, before the others count on this node: they would wait for its images, and a
        process group does not wait for long. Raises StageFailed."""
        self._restore(self.workspace)
        arguments = ["-m", f"nightowl.stages.{TOGETHER}_join", self.workspace.detector, "--prepare"]
        if self._follow(repro.start(self.workspace, TOGETHER, arguments, piped=True), None) != 0:
            raise StageFailed(f"{TOGETHER}@{self.workspace.detector}: its images could not be prepared here; see the log")

    def _restore(self, workspace: Workspace) -> None:
        arguments = ["-m", "dvc", "repro", "--quiet", "--pull", f"{_BEFORE}@{workspace.detector}"]
        if self._follow(repro.start(workspace, _NOBODY, arguments, piped=True), None) != 0:
            raise StageFailed(f"{_BEFORE}@{workspace.detector}: could not be had from the DVC remote; see the log")

    def _join(self, workspace: Workspace, stage: str) -> Ended:
        self._restore(workspace)
        arguments = ["-m", f"nightowl.stages.{stage}_join", workspace.detector]
        code = self._follow(repro.start(workspace, stage, arguments, piped=True), None)
        if code == Preempted.exit_code:
            raise Preempted("asked to stop")
        if code != 0:
            raise StageFailed(f"{stage}_join ended with exit code {code}; see the log")
        return Ended("done", "", True)

    def _follow(self, process: "subprocess.Popen[bytes]", leader: Path | None) -> int:
        """Say what `process` writes until it has ended; returns its exit code."""
        reader = threading.Thread(target=self._read, args=(process,), name="read", daemon=True)
        with self._lock:
            self._process, self._leader = process, leader
            self._stop_what_runs()
        reader.start()
        code = wait(process)
        with self._lock:
            stopper, self._process, self._stopper = self._stopper, None, None
        if stopper is not None:
            stopper.join()  # it sweeps, and must not meet the processes of what comes next
        reader.join(_LAST_LINES_SECONDS)  # what it left behind may hold the pipe
        if self._stopping and code != 0 and leader is None:
            raise Interrupted("asked to stop")
        return code

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        with process.stdout or nullcontext():
            for line in lines(process):
                self.say(line)

    @property
    def _stopping(self) -> bool:
        return self._patience_seconds is not None

    def _stop_what_runs(self) -> None:
        """With the lock held: see to the end of the process that runs, if there is one and it is to end."""
        if self._process is not None and self._patience_seconds is not None:
            what = (self._process, self._leader, self._patience_seconds)
            self._stopper = threading.Thread(target=self._end, args=what, name="stop", daemon=True)
            self._stopper.start()

    def _end(self, process: "subprocess.Popen[bytes]", leader: Path | None, patience_seconds: float) -> None:
        if leader is not None:
            repro.stop(process, leader, patience_seconds)
            self.sweep()
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            self.sweep()


def newest_step(settings: Settings, detector: str) -> int | None:
    """The newest step committed on this machine's disk, of the training that was written to last."""
    local, _ = places(settings, detector)
    if not local.root.is_dir():
        return None
    trainings = [path for path in local.root.iterdir() if (path / "commits").is_dir()]
    for path in sorted(trainings, key=lambda each: (each / "commits").stat().st_mtime, reverse=True):
        bucket = local.under(path.name)
        for name in commit_names(bucket):
            try:
                return read_commit(bucket, name).moment.step
            except (CheckpointError, ObjectMissing):
                continue
    return None
