"""One rank of the stage train, started by torchrun; it trains and commits, and publishes nothing: that is for the stage."""

import os
import signal
import sys
import traceback
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

import torch

from nightowl.checkpoint.place import checkpoint_run
from nightowl.errors import NightowlError, Preempted
from nightowl.params import load_params
from nightowl.processes import ask_for_signal_when_parent_ends
from nightowl.settings import load_settings
from nightowl.stages.looking_on import looked_on
from nightowl.stages.training_inputs import identity_of, pinned, prepared
from nightowl.stages.workspace import Workspace
from nightowl.training.display import Display
from nightowl.training.group import Ranks
from nightowl.training.job import train_on
from nightowl.training.launch import report
from nightowl.training.memory_use import memory_in_words
from nightowl.training.pulse import board_of
from nightowl.training.stopping import SignalStop
from nightowl.training.watch import Unwatched
from nightowl.training.watchdog import Watchdog

_SPARE_SECONDS = 60.0  # the watchdog names the rank that hangs before a collective gives up


def run(root: Path, detector: str) -> None:
    """Train as the rank that torchrun's variables say. Raises as `train_on` does."""
    workspace = Workspace(root, detector, load_settings(root))
    settings, params = workspace.settings, load_params(root, detector)
    base, dataset = pinned(workspace)
    job = prepared(params, workspace, dataset, base)
    on_gpu = settings.device != "cpu" and torch.cuda.is_available()
    device = f"cuda:{os.environ['LOCAL_RANK']}" if on_gpu else "cpu"
    with ExitStack() as until_end, SignalStop().listening() as stop:
        group = Ranks(device, (settings.rank_timeout_seconds + _SPARE_SECONDS) / 60)
        until_end.callback(group.close)
        watchdog = Watchdog(group.heart, board_of(group), group.world_size, settings.rank_timeout_seconds)
        until_end.enter_context(watchdog.watching())
        if group.rank == 0:
            display = until_end.enter_context(Display(memory=partial(memory_in_words, device)))
            identity = identity_of(params, workspace, base)
            kept = until_end.enter_context(checkpoint_run(settings, detector, identity, display.note))
            watcher = until_end.enter_context(looked_on(display, workspace, identity.key(), device))
            train_on(job, device, group, kept, watcher, stop)
        else:
            train_on(job, device, group, None, Unwatched(), stop)


def main() -> NoReturn:
    """Exit 0 when all is trained, or when asked to stop: torchrun knows only well and not. What it was is in the report."""
    ask_for_signal_when_parent_ends(signal.SIGTERM)
    signal.signal(signal.SIGTERM, _preempt)
    rank, code = int(os.environ["RANK"]), 0
    try:
        run(Path.cwd(), sys.argv[1])
    except Preempted as error:
        report(rank, True, str(error))
    except NightowlError as error:
        report(rank, False, str(error))
        code = 1
    except Exception as error:  # noqa: BLE001  the border of the process: what happened is for the stage to say
        traceback.print_exc()
        report(rank, False, f"rank {rank}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        code = 1
    sys.stderr.flush()
    os._exit(code)  # threads of a group that lost a rank would hold the process


def _preempt(signum: int, frame: FrameType | None) -> NoReturn:
    raise Preempted("asked to stop; run it again and it goes on")


if __name__ == "__main__":
    main()
