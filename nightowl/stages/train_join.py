"""A further host of a training: its ranks join those of host 0, which commits and publishes."""

import signal
import sys
from pathlib import Path

from nightowl.errors import NightowlError
from nightowl.params import load_params
from nightowl.settings import load_settings
from nightowl.stages.training_inputs import pinned, prepared
from nightowl.stages.workspace import Workspace
from nightowl.training.launch import Hosts, train_in_ranks


def prepare(root: Path, detector: str) -> Workspace:
    """Have the images of the training prepared here, so that no other host has to wait for them."""
    workspace = Workspace(root, detector, load_settings(root))
    base, dataset = pinned(workspace)
    prepared(load_params(root, detector), workspace, dataset, base)
    return workspace


def run(root: Path, detector: str) -> None:
    """Prepare the images here, then train to the end. Raises as `train_in_ranks` does."""
    workspace = prepare(root, detector)
    train_in_ranks(root, detector, Hosts.of(workspace.settings))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been held, or ignored, until here
    try:
        (prepare if sys.argv[2:] == ["--prepare"] else run)(Path.cwd(), sys.argv[1])
    except NightowlError as error:
        print(f"nightowl: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
