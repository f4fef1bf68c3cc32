"""Run a flow in place, without a Prefect server: `python -m flows nightly demo`. The `nightowl` command calls this.

Without PREFECT_API_URL, Prefect starts a server of its own for the duration; with it, the run is shown there.
"""

import argparse
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from nightowl.errors import NightowlError, StageFailed, explain_os_error
from nightowl.night.record import Ending

REFUSED = 3  # what --fail-on-refusal ends with
PATIENCE = "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"
_PATIENCE_SECONDS = "180"  # Prefect's own 20 do not suffice on a busy machine
SERVER_LATE = "Timed out while attempting to connect to ephemeral Prefect API server"  # how Prefect's own error begins


def main(arguments: list[str] | None = None) -> int:
    """Run the named flow and return the exit code of the process."""
    options = _parse(arguments)
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW", "ignore")
    os.environ.setdefault(PATIENCE, _PATIENCE_SECONDS)
    print("starting Prefect…", flush=True)  # on a busy machine it takes a minute, and nothing else is to be seen meanwhile
    try:
        ending = _run(options)
    except RuntimeError as error:
        late = explain_late_server(error)
        if late is None:
            raise
        raise late from error
    _say_where(ending, options.next_steps)
    refused = ending.outcome == "refused" or ending.still_refused
    return REFUSED if options.fail_on_refusal and refused else 0


def explain_late_server(error: RuntimeError) -> StageFailed | None:
    """The one-line error for a server of Prefect's own that did not start in time, or None for any other."""
    if not str(error).startswith(SERVER_LATE):
        return None
    return StageFailed(
        f"Prefect's local server did not answer within {os.environ.get(PATIENCE, _PATIENCE_SECONDS)} s; run it again when the "
        f"machine is less busy, raise {PATIENCE}, or set PREFECT_API_URL to a server that runs"
    )


def _run(options: argparse.Namespace) -> Ending:
    from flows.nightly import nightly
    from flows.retrain import retrain

    flow = nightly if options.flow == "nightly" else retrain
    ending = flow(options.detector, source=options.source)
    assert isinstance(ending, Ending)
    return ending


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m flows", description=__doc__)
    parser.add_argument("flow", choices=["nightly", "retrain"])
    parser.add_argument("detector")
    parser.add_argument("--source", help="folder the data lies in; remembered for next time")
    parser.add_argument("--fail-on-refusal", action="store_true", help=f"end with {REFUSED} when the gate refuses")
    parser.add_argument("--next-steps", action="store_true", help="end with how to use one's own data")
    return parser.parse_args(arguments)


def _say_where(ending: Ending, next_steps: bool) -> None:
    from nightowl.registry.store import open_registry
    from nightowl.settings import home_of, load_settings

    settings = load_settings(Path.cwd())
    name = ending.detector
    print(f"\nreport    {ending.report}")
    print(f"registry  {open_registry(settings).describe()}  (browse: nightowl models {name})")
    if ending.champion_version:
        champion = f"{name}@champion"
        print(f"model     {champion} is version {ending.champion_version}  (try: nightowl predict --model {champion} IMAGE)")
    else:
        print(f"model     {name} has no champion yet")
    if next_steps:
        print(f"images    {home_of(settings) / 'demo-data'}")
        print(
            "\nYour own data: nightowl init NAME --source PATH   writes detectors/NAME/params.yaml from what it finds\n"
            "               git add -A && git commit           a night runs a commit\n"
            "               nightowl night NAME                retrains, judges, and ships it if it is better"
        )


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """An end that no operator asked for, in order: what is under way saves, and a run on nodes is left to go on."""
    sys.exit(128 + number)


def _guarded() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with it ignored
    signal.signal(signal.SIGTERM, _terminated)
    try:
        return main()
    except KeyboardInterrupt:
        print("interrupted: run the same command again and it goes on where it stopped", file=sys.stderr)
        return 130
    except NightowlError as error:
        print(f"nightowl: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        explained = explain_os_error(error)
        if explained is None:
            raise
        print(f"nightowl: {explained}", file=sys.stderr)
        return explained.exit_code


if __name__ == "__main__":
    sys.exit(_guarded())
