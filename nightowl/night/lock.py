"""One night a detector at a time, on one machine. The lock is the kernel's: it goes with the process, however that ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nightowl.errors import UserError


@contextmanager
def only_night(home: Path, detector: str) -> Iterator[None]:
    """Hold the detector's lock for the duration of the block. Raises UserError at once when another process has it."""
    path = home / "locks" / f"{detector}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise UserError(
                f"a night of {detector} is running already (process {holder}); wait for it, or stop it with: kill -INT {holder}"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
