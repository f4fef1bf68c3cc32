"""One line to whoever watches: the terminal when a night runs in place, the run's log when Prefect runs it."""

import os

from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger


def orchestrated() -> bool:
    """Whether a Prefect worker started this process."""
    return "PREFECT__FLOW_RUN_ID" in os.environ


def say(line: str) -> None:
    if not orchestrated():
        print(line, flush=True)
        return
    try:
        get_run_logger().info(line)
    except MissingContextError:
        print(line, flush=True)
