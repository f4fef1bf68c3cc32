"""`nightowl train`: the stage train by hand, on as many ranks and hosts as there are."""

import os
import sys
from typing import Annotated

import typer


def train(
    name: Annotated[str, typer.Argument(help="the detector, with its inputs pinned and prepared")],
    nproc: Annotated[int | None, typer.Option(min=1, help="ranks on this host: one a GPU, or processes on the CPU")] = None,
    nnodes: Annotated[int | None, typer.Option(min=1, help="hosts that train together; each runs this command")] = None,
    node_rank: Annotated[int | None, typer.Option(min=0, help="which of the hosts this is; 0 publishes")] = None,
    rendezvous: Annotated[str | None, typer.Option(help="HOST:PORT on host 0, where they meet")] = None,
) -> None:
    """Train NAME and publish its weights, or go on where it was stopped."""
    from nightowl.commands.foreground import run_in_foreground
    from nightowl.commands.place import workspace_of
    from nightowl.errors import DataError, remedy

    workspace = workspace_of(name)
    for needed in (workspace.base, workspace.dataset):  # before the seconds that libraries take
        if not needed.exists():
            raise DataError(f"{needed}: not there; {remedy(needed)}")
    given = {"NPROC": nproc, "NNODES": nnodes, "NODE_RANK": node_rank, "RENDEZVOUS": rendezvous}
    os.environ.update({f"NIGHTOWL_{key}": str(value) for key, value in given.items() if value is not None})
    stage = "train" if not node_rank else "train_join"
    command = [sys.executable, "-m", "nightowl.starting", f"nightowl.stages.{stage}", name]
    raise typer.Exit(run_in_foreground(command, workspace.root, held=True))
