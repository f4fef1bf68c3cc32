"""`nightowl machines`: what runs on nodes, here or rented, what it costs, and its end; and whether renting would work."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nightowl.cloud.ec2_session import Aws
    from nightowl.machine_settings import MachineSettings
    from nightowl.machines.local import LocalEngine
    from nightowl.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Runs on nodes, here or rented: what there is, what it costs, and its end.")


@app.command("list")
def list_() -> None:
    """Show the runs of this machine, and every rented one in the region: its run, its age, and what it has cost so far."""
    from nightowl.commands.place import settings_here
    from nightowl.machines.follow import describe

    settings = settings_here()
    runs = _engine_here(settings).runs()
    for status in runs:
        print(describe(status))
    if settings.engine == "detached" and not runs:
        print("no runs on this machine")
    if settings.machines is not None or (settings.engine != "detached" and not runs):
        _list_rented()


@app.command()
def cancel(run: Annotated[str, typer.Argument(help="its id, as `list` shows it")]) -> None:
    """End a run: its training saves first, and goes on when the night is run again."""
    from nightowl.commands.place import settings_here
    from nightowl.machines.follow import leave
    from nightowl.machines.spot_site import RentedMachines

    settings = settings_here()
    here = _engine_here(settings)
    engine = here if any(each.run_id == run for each in here.runs()) else RentedMachines(settings).engine()
    status = engine.status(run)
    if status.over:
        print(f"{run} is over already: {status.state}")
        return
    leave(engine, run, print)


def _list_rented() -> None:
    from datetime import UTC, datetime

    from rich.console import Console
    from rich.table import Table

    from nightowl.machines.listing import rented, rows
    from nightowl.machines.price import in_usd, read_prices

    _, _, aws = _here()
    now, found = datetime.now(UTC), rented(aws)
    machines = [machine for each in found for machine in each.instances]
    since = min((machine.launched_at for machine in machines), default=now)
    prices = read_prices(aws, {machine.type for machine in machines}, since)
    table = Table("run", "machine", "type", "zone", "kind", "hours", "USD an hour", "USD so far", "ends (UTC)")
    for row in rows(found, prices, now):
        machine, ends = row.instance, f"{row.deadline:%Y-%m-%d %H:%M}" if row.deadline else "unknown"
        money = in_usd(row.usd_per_hour), in_usd(row.usd)
        what = machine.id, machine.type, machine.zone, machine.lifecycle
        table.add_row(row.run_id, *what, f"{row.hours:.1f}", *money, ends)
    console = Console(highlight=False)
    if table.row_count:
        console.print(table)
    empty = [each.run_id for each in found if not each.instances]
    print(f"{len(machines)} machines in {aws.region}" + (f"; without any now: {', '.join(empty)}" if empty else ""))


@app.command()
def reap(dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be ended, and end nothing")] = False) -> None:
    """End everything that carries nightowl's tag and is past its deadline. Exit code 1 when something is left or unclear."""
    from datetime import UTC, datetime

    from nightowl.machines.listing import rented
    from nightowl.machines.reaper import in_words, overdue
    from nightowl.machines.reaper import reap as reap_now

    _, _, aws = _here()
    now = datetime.now(UTC)
    if dry_run:
        for run in overdue(rented(aws), now):
            print(f"{run.run_id}: past its deadline {run.deadline:%Y-%m-%d %H:%M} UTC: {len(run.instances)} machines")
        return
    harvest = reap_now(aws, now)
    for line in in_words(harvest):
        print(line)
    print(f"{len(harvest.reaped)} runs reaped, {len(harvest.kept)} within their time, {len(harvest.unclear)} unclear")
    raise typer.Exit(0 if harvest.clean else 1)


@app.command()
def check() -> None:
    """Say whether machines would start: credentials, clock, bucket, image, network, quota, price, rights. Creates nothing."""
    from nightowl.machines.preflight import preflight
    from nightowl.machines.reach import checkpoints_there

    settings, machines, aws = _here()
    wrong = 0
    places = {"CHECKPOINTS": checkpoints_there(settings, machines)}
    for finding in preflight(machines, aws, settings.s3_endpoint, places):
        print(f"{finding.state:8} {finding}", flush=True)
        wrong += finding.state == "wrong"
    raise typer.Exit(1 if wrong else 0)


@app.command()
def policies(
    out: Annotated[Path, typer.Option(help="the folder to write them to")] = Path("policies"),
    detector: Annotated[str | None, typer.Option(help="whose data the nodes are to read")] = None,
) -> None:
    """Write the IAM policies that are needed, filled in as far as the settings say."""
    from nightowl.cloud.ec2_facts import caller, profile_role
    from nightowl.errors import RemoteError
    from nightowl.files import write_atomic
    from nightowl.machines.policies import NAMES, policy, unfilled, values_of
    from nightowl.machines.reach import checkpoints_there

    settings, machines, aws = _here()
    try:
        account, role = caller(aws).split(":")[4], profile_role(aws, machines.instance_profile)
    except RemoteError as error:
        account, role = None, None
        print(f"account unknown: {error}")
    places = {
        "CHECKPOINTS": checkpoints_there(settings, machines),
        "SOURCE": settings.sources.get(detector or ""),
        "CACHE": _cache(),
    }
    values = values_of(machines, account, role, places)
    for name in NAMES:
        text = policy(name, values)
        write_atomic(out / f"{name}.json", text.encode())
        left = unfilled(text)
        print(f"{out / name}.json" + (f"   fill in: {', '.join(left)}" if left else ""))


def _cache() -> str | None:
    """Where the shared cache is; None without a remote."""
    from nightowl.cloud.dvc_config import read_config
    from nightowl.errors import DataError
    from nightowl.night.checkout import checkout_root

    try:
        return read_config(checkout_root(Path.cwd())).remote(None)["url"]
    except DataError:
        return None


def _engine_here(settings: "Settings") -> "LocalEngine":
    from nightowl.machines.here import ThisMachine

    return ThisMachine(settings).engine()


def _here() -> "tuple[Settings, MachineSettings, Aws]":
    from nightowl.cloud.ec2_session import Aws
    from nightowl.commands.place import settings_here
    from nightowl.machines.reach import machines_of

    settings = settings_here()
    machines = machines_of(settings)
    return settings, machines, Aws(machines.region, machines.endpoint_ec2)
