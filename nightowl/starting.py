"""The first moments of a process: `python -m nightowl.starting MODULE ARGUMENTS` runs MODULE as `python -m MODULE` does.

A Ctrl-C that comes while MODULE still imports its libraries (torch takes seconds) ends it with one line instead of a traceback
out of their midst. MODULE takes SIGINT over when it has begun.
"""

import os
import runpy
import signal
import sys
from types import FrameType
from typing import NoReturn

from nightowl.processes import say_at_once

INTERRUPTED = 130


def main() -> None:
    signal.signal(signal.SIGINT, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # it may have been held back while Python itself started
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """At once: nothing has begun that could be lost, and an exception could be swallowed by what is being imported."""
    say_at_once("nightowl: interrupted before it began; run the same command again")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
