"""One process at a time, over whatever lies beside a lock file."""

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder`, which goes with the process; says so when it has to wait for another's."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another pull into {folder} is running: waiting for it to end", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
