"""`nightowl models`, `promote` and `rollback`: what the registry holds, and who is champion."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from nightowl.registry.history import user_name

if TYPE_CHECKING:
    from nightowl.registry.history import Event
    from nightowl.registry.version import VersionInfo

Name = Annotated[str, typer.Argument(help="the detector")]
Reason = Annotated[str, typer.Option(help="why; it is kept in the history")]

_WIDE_COLUMNS, _NARROW = 120, 7  # terminals narrower than that show the first seven columns
_HEADER = ("version", "state", "night", "mAP50", "mAP50-95", "verdict", "parity", "against", "data", "commit")


def models(
    name: Annotated[str | None, typer.Argument(help="the detector; all of them without it")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of a table")] = False,
) -> None:
    """List the registered versions, newest first, and the history of champions."""
    from nightowl.commands.place import settings_here, workspace_of
    from nightowl.registry.store import open_registry

    registry = open_registry(settings_here())
    names = [name] if name else registry.detectors()
    found = {detector: (registry.versions(detector), registry.history(detector)) for detector in names}
    if name and not found[name][0]:
        workspace_of(name)  # a name that params.yaml does not list either is a misspelt one
    if as_json:
        print(json.dumps({detector: _plain(*rows) for detector, rows in found.items()}, indent=2))
        return
    if not any(versions for versions, _ in found.values()):
        what = f"{name} has no registered version" if name else "no detector has a registered version"
        print(f"{what} in {registry.describe()}; a night makes one: nightowl night {name or 'NAME'}")
        return
    for detector, (versions, events) in found.items():
        _show(detector, versions, events)


def promote(
    name: Name,
    version: Annotated[str, typer.Argument(help="the version's number")],
    reason: Reason,
    force: Annotated[bool, typer.Option(help="although the gate or parity refused it, or it was taken back; recorded")] = False,
) -> None:
    """Make VERSION the champion of NAME, by hand."""
    from nightowl.commands.place import settings_here
    from nightowl.registry.store import open_registry

    registry = open_registry(settings_here())
    before = registry.champion(name)
    made = registry.promote(name, version, reason, by=user_name(), force=force)
    if before is not None and before.version == made:
        print(f"{name}: version {made} is the champion already; nothing was changed")
    else:
        print(f"{name}: version {made} is the champion now" + (f"; before it: version {before.version}" if before else ""))


def rollback(name: Name, reason: Reason) -> None:
    """Take the champion of NAME back: the one before it is champion again."""
    from nightowl.commands.place import settings_here
    from nightowl.registry.store import open_registry

    registry = open_registry(settings_here())
    before = registry.champion(name)
    now = registry.rollback(name, reason, by=user_name())
    print(f"{name}: version {now} is the champion again; taken back: version {before.version if before else 'unknown'}")


def _show(detector: str, versions: "list[VersionInfo]", events: "list[Event]") -> None:
    """A table on a terminal; elsewhere one line a version, tabs between, for other programs."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    rows = [_row(info) for info in reversed(versions)]
    if not console.is_terminal:
        for row in rows:
            print("\t".join((detector, *row)))
        return
    shown = len(_HEADER) if console.width >= _WIDE_COLUMNS else _NARROW
    table = Table(*_HEADER[:shown], title=detector, title_justify="left")
    for row in rows:
        table.add_row(*row[:shown], style="bold" if row[1] == "champion" else None)
    console.print(table)
    for event in reversed(events):
        console.print(_told(event), markup=False, highlight=False)


def _row(info: "VersionInfo") -> tuple[str, ...]:
    record = info.record
    return (
        info.version,
        info.state + (" (forced)" if info.forced else "") + (" (dirty tree)" if record.dirty else ""),
        record.night_id,
        _figure(record.map50),
        _figure(record.map50_95),
        record.verdict,
        "passed" if record.parity_passed else "failed",
        f"version {record.champion_version}" if record.champion_version else "-",
        record.dataset_version[:12],
        record.code_commit[:7],
    )


def _plain(versions: "list[VersionInfo]", events: "list[Event]") -> dict[str, object]:
    rows = [info.model_dump(mode="json") | {"champion": info.champion, "taken_back": info.taken_back} for info in versions]
    return {"versions": rows, "history": [event.model_dump(mode="json") for event in events]}


def _told(event: "Event") -> str:
    did = {"promote": "promoted", "rollback": "went back to"}[event.action]
    came_from = f", from version {event.came_from}" if event.came_from else ""
    note = {"done": "", "begun": " (not completed)", "abandoned": " (never came to pass)"}[event.state]
    forced = " by force" if event.forced else ""
    return f"{event.at:%Y-%m-%d %H:%M} UTC  {event.by} {did} version {event.version}{came_from}{forced}: {event.reason}{note}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
