"""Saving behind the training: a state is copied in the step, and serialised, hashed, written and uploaded in threads.

One state is being written and at most one waits: a newer one takes the place of the waiting one, unless that one must stay. A
state that cannot be saved is said aloud and does not end the training, as long as there is another chance.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from nightowl.checkpoint.commits import Moment
from nightowl.checkpoint.mirror import Mirror
from nightowl.checkpoint.plan import Cadence
from nightowl.checkpoint.run import Run
from nightowl.checkpoint.serialise import State
from nightowl.errors import Fenced, StorageError, explain_os_error

Clock = Callable[[], float]
MIRROR_SECONDS = 60.0  # of the two minutes that a spot machine has


@dataclass(frozen=True)
class _Waiting:
    moment: Moment
    state: State


class Saver:
    """Saves states of `run`; a context, at whose end all threads are gone. One thread calls its methods."""

    def __init__(self, run: Run, cadence: Cadence, say: Callable[[str], None], clock: Clock = time.monotonic) -> None:
        self._run, self._cadence, self._say, self._clock = run, cadence, say, clock
        self._mirror = Mirror(run.local, run.mirror, run.writer, run.keep, say) if run.mirror is not None else None
        self._state = threading.Condition()
        self._waiting: _Waiting | None = None
        self._busy = self._closing = False
        self._error: BaseException | None = None  # of the newest state: None when it was committed
        self._saved_step: int | None = None
        self._capture_seconds = self._write_seconds = 0.0
        self._last = clock()
        self._thread = threading.Thread(target=self._write_all, name="checkpoint writer", daemon=True)

    def __enter__(self) -> "Saver":
        self._thread.start()
        if self._mirror is not None:
            self._mirror.start()
            self._mirror.told()  # what a process before this one could not bring there
        return self

    def __exit__(self, *error: object) -> None:
        with self._state:
            self._closing = True
            self._state.notify_all()
        self._thread.join()
        if self._mirror is not None:
            self._mirror.close()

    @property
    def cost_seconds(self) -> float:
        """What the last state took of the steps' time: its capture, and the processor time of the thread that wrote it."""
        return self._capture_seconds + self._write_seconds

    def is_due(self) -> bool:
        """Whether the next state by time is due. Cheap: to be asked at each step."""
        return self._cadence.is_due(self._clock() - self._last, self.cost_seconds)

    def save(self, capture: Callable[[], State], moment: Moment) -> None:
        """Take the state that `capture` copies to the CPU, and commit it behind the training.

        Raises:
            Fenced: another process has taken this training over; found at one of the saves before.
        """
        self._raise_if_fenced()
        begun = time.perf_counter()
        state = capture()
        self._capture_seconds = time.perf_counter() - begun
        with self._state:
            must_stay = self._waiting is not None and self._run.keep.always(self._waiting.moment)
            self._state.wait_for(lambda: not must_stay or self._waiting is None)
            self._waiting = _Waiting(moment, state)
            self._state.notify_all()
        self._last = self._clock()

    def flush(self, mirror_seconds: float = MIRROR_SECONDS) -> None:
        """Wait until the newest state is committed, and for at most `mirror_seconds` until the mirror has it; what it has not
        then is said.

        Raises:
            StorageError, OSError: the newest state could not be committed. Fenced: nor may it.
        """
        with self._state:
            self._state.wait_for(lambda: self._waiting is None and not self._busy)
        self._raise_if_fenced()
        if self._error is not None:
            raise self._error
        if self._mirror is not None and not self._mirror.wait(mirror_seconds):
            assert self._run.mirror is not None
            self._say(f"{self._run.mirror.url} has not got the newest checkpoint; {self._run.local.url} has")
        self._raise_if_fenced()

    def _raise_if_fenced(self) -> None:
        for error in (self._error, self._mirror.error if self._mirror is not None else None):
            if isinstance(error, Fenced):
                raise error

    def _write_all(self) -> None:
        while (waiting := self._next()) is not None:
            error = self._write(waiting)
            with self._state:
                self._busy, self._error = False, error
                self._state.notify_all()

    def _next(self) -> _Waiting | None:
        """The next state to write; None when all are written and it is to end."""
        with self._state:
            self._state.wait_for(lambda: self._waiting is not None or self._closing)
            waiting, self._waiting = self._waiting, None
            self._busy = waiting is not None
            self._state.notify_all()
            return waiting

    def _write(self, waiting: _Waiting) -> BaseException | None:
        begun = time.thread_time()
        try:
            self._run.commit(waiting.moment, waiting.state)
        except Fenced as error:
            return error
        except Exception as error:  # noqa: BLE001  the border of a thread: it is raised where the state is waited for
            explained = (explain_os_error(error) if isinstance(error, OSError) else None) or error
            self._say_fault(waiting.moment.step, explained)
            return explained
        self._write_seconds = time.thread_time() - begun
        if isinstance(self._error, StorageError):
            self._say(f"checkpoints are saved again, as of step {waiting.moment.step}")
        self._saved_step = waiting.moment.step
        if self._mirror is not None:
            self._mirror.told()
        return None

    def _say_fault(self, step: int, error: BaseException) -> None:
        if str(error) == str(self._error):
            return
        stands = "none was saved yet" if self._saved_step is None else f"step {self._saved_step} is the last that was"
        self._say(f"checkpoint of step {step} NOT saved: {error}; the training goes on, but {stands}")
