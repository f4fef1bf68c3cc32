"""A run's checkpoints brought elsewhere, behind the training: what is slow, refuses or is gone there never stops it.

One thread follows the folder: it brings the newest state and those that stay, tries again while the place is not there, says so
once, and says once when it is there again.
"""

import threading
from collections.abc import Callable

from nightowl.checkpoint.commits import Commit
from nightowl.checkpoint.copies import commit_names, prune, put_state, read_commits
from nightowl.checkpoint.plan import Keep
from nightowl.cloud.bucket import Bucket, FolderBucket
from nightowl.errors import Fenced, RemoteError, explain_os_error

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
_CLOSING_SECONDS = 5.0


def bring_up_to_date(local: FolderBucket, remote: Bucket, writer: int, keep: Keep) -> Commit | None:
    """Have the newest local state, and those that stay, in `remote` too; returns the newest.

    Raises:
        RemoteError, OSError, Fenced. FileNotFoundError: a state was dropped here meanwhile; look again.
    """
    there = set(commit_names(remote))
    commits = read_commits(local)
    for place, commit in enumerate(commits):
        if commit.name not in there and (place == 0 or keep.always(commit.moment)):
            put_state(remote, commit, local.path(commit.data), writer)
    if commits:
        prune(remote, keep, commits[0])
    return commits[0] if commits else None


class Mirror:
    """Follows `local` in a thread from `start` to `close`. `error` is what ends it: another writer has taken over."""

    def __init__(self, local: FolderBucket, remote: Bucket, writer: int, keep: Keep, say: Callable[[str], None]) -> None:
        self._local, self._remote, self._writer, self._keep, self._say = local, remote, writer, keep, say
        self.error: Fenced | None = None
        self._state = threading.Condition()
        self._asked = self._done = 0  # how often it was told of something new, and how often of those it had caught up
        self._closing = False
        self._fault: str | None = None
        self._thread = threading.Thread(target=self._follow, name="checkpoint mirror", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def told(self) -> None:
        """There is something new in the folder."""
        with self._state:
            self._asked += 1
            self._state.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until all that it was told of is there, for at most `seconds`; whether it is."""
        with self._state:
            self._state.notify_all()
            return self._state.wait_for(lambda: self._done == self._asked or self.error is not None, seconds)

    def close(self) -> None:
        with self._state:
            self._closing = True
            self._state.notify_all()
        self._thread.join(_CLOSING_SECONDS)  # one that hangs in the network ends with the process

    def _follow(self) -> None:
        pause = 0.0
        while self._next(pause):
            asked = self._asked
            try:
                newest = bring_up_to_date(self._local, self._remote, self._writer, self._keep)
            except FileNotFoundError:
                continue
            except Fenced as error:
                self._finish(asked, error)
                return
            except (RemoteError, OSError) as error:
                pause = min(LONGEST_PAUSE_SECONDS, max(FIRST_PAUSE_SECONDS, 2 * pause))
                self._say_fault(error)
                continue
            pause = 0.0
            self._say_good(newest)
            self._finish(asked, None)

    def _next(self, pause: float) -> bool:
        """Wait for something new, or `pause` seconds after a fault; False when it is to end."""
        with self._state:
            if pause:
                self._state.wait_for(lambda: self._closing, pause)
            else:
                self._state.wait_for(lambda: self._closing or self._asked > self._done)
            return not self._closing

    def _finish(self, asked: int, error: Fenced | None) -> None:
        with self._state:
            self._done, self.error = asked, error
            self._state.notify_all()

    def _say_fault(self, error: Exception) -> None:
        if self._fault is None:
            told = explain_os_error(error) or error if isinstance(error, OSError) else error
            self._say(
                f"checkpoints are not copied to {self._remote.url} for now: {told}; the training goes on, committing to "
                f"{self._local.url}, and the newest is copied once it answers"
            )
        self._fault = str(error)

    def _say_good(self, newest: Commit | None) -> None:
        if self._fault is not None and newest is not None:
            self._say(f"checkpoints are copied to {self._remote.url} again, as far as step {newest.moment.step}")
        self._fault = None
