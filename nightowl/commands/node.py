"""`nightowl node`: what a rented machine runs, and each node of the engine `local`. Not for people to call."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nightowl.cloud.metadata import Machine
    from nightowl.machines.records import NodeBeat

_HOME = "/var/lib/nightowl"


def node(
    run: Annotated[str, typer.Option(help="the run's id")],
    board: Annotated[str, typer.Option(help="s3://BUCKET/PREFIX or the folder of all boards")],
    instance: Annotated[str | None, typer.Option(help="a name, for a node on this machine; default: ask EC2")] = None,
    address: Annotated[str, typer.Option(help="with --instance: where its peers reach it")] = "127.0.0.1",
    since: Annotated[float | None, typer.Option(help="when its environment began to be made, in seconds since 1970")] = None,
) -> None:
    """Run the stages of a run on this machine, with its other nodes."""
    from nightowl.cloud.ec2_instances import leave_group
    from nightowl.cloud.metadata import Machine, Metadata, SpotWatcher
    from nightowl.data.source import pin_snapshot
    from nightowl.errors import RemoteError
    from nightowl.machines.agent import Place, run_node
    from nightowl.machines.board import Board, board_bucket
    from nightowl.night.sources import pull_source
    from nightowl.settings import Settings

    def pull(settings: Settings, detector: str, source: str) -> None:
        pin_snapshot(settings, detector, pull_source(settings, detector, source).folder)

    home = Path(os.environ.get("NIGHTOWL_NODE_HOME", _HOME))
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    bucket = board_bucket(board, os.environ.get("NIGHTOWL_S3_ENDPOINT") or endpoint)
    now = datetime.now(UTC)
    if instance is not None:
        me = _first_beat(Machine(instance, address, "local", "local", region="local", spot=False), "local", now)
        run_node(Board(bucket, run), me, Place(Path.cwd(), home), None, pull, lambda decrement: None)
        return
    metadata = Metadata()
    machine = metadata.machine()
    me = _first_beat(machine, "spot" if machine.spot else "on-demand", now)
    begun = datetime.fromtimestamp(since, UTC) if since is not None else now
    up = float(Path("/proc/uptime").read_text().split()[0])

    def leave(decrement: bool) -> None:
        try:
            leave_group(machine.instance, decrement, endpoint, machine.region)
        except RemoteError as error:
            print(f"{machine.instance}: could not leave its group: {error}", flush=True)  # it shuts down all the same

    place = Place(Path.cwd(), home, min(begun, datetime.fromtimestamp(time.time() - up, UTC)), begun)
    run_node(Board(bucket, run), me, place, SpotWatcher(metadata), pull, leave)


def _first_beat(machine: "Machine", lifecycle: str, now: datetime) -> "NodeBeat":
    from nightowl.machines.records import NodeBeat

    return NodeBeat(
        instance=machine.instance,
        address=machine.address,
        num_gpus=len(list(Path("/dev").glob("nvidia[0-9]*"))),
        instance_type=machine.instance_type,
        zone=machine.zone,
        lifecycle=lifecycle,
        state="booting",
        at=now,
    )
