"""`nightowl models`, `promote`, `rollback` and `reference`: what the registry holds, and who is champion."""

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from nightowl.registry.decisions import budget_left, reference_of
from nightowl.registry.history import user_name

if TYPE_CHECKING:
    from nightowl.registry.history import Event
    from nightowl.registry.store import Registry
    from nightowl.registry.version import VersionInfo

Name = Annotated[str, typer.Argument(help="the detector")]
Engines = dict[str, list[str]]
Reason = Annotated[str, typer.Option(help="why; it is kept in the history")]

_WIDE_COLUMNS, _NARROW = 120, 7  # terminals narrower than that show the first seven columns
_HEADER = ("version", "state", "night", "mAP50", "mAP50-95", "verdict", "parity", "against", "data", "commit", "engines")


def models(
    name: Annotated[str | None, typer.Argument(help="the detector; all of them without it")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of a table")] = False,
) -> None:
    """List the registered versions, newest first, what is left of the error budget, and the history of champions."""
    from nightowl.commands.place import settings_here, workspace_of
    from nightowl.night.engine import engines_by_onnx
    from nightowl.registry.store import open_registry

    settings = settings_here()
    registry, engines = open_registry(settings), engines_by_onnx(settings)
    names = [name] if name else registry.detectors()
    found = {detector: _found(registry, detector) for detector in names}
    if name and not found[name][0]:
        workspace_of(name)  # a name that params.yaml does not list either is a misspelt one
    if as_json:
        print(json.dumps({detector: _plain(*rows, engines) for detector, rows in found.items()}, indent=2))
        return
    if not any(versions for versions, _, _ in found.values()):
        what = f"{name} has no registered version" if name else "no detector has a registered version"
        print(f"{what} in {registry.describe()}; a night makes one: nightowl night {name or 'NAME'}")
        return
    if not sys.stdout.isatty():
        print("\t".join(("detector", *_HEADER)))
    for detector, rows in found.items():
        _show(detector, *rows, engines)


def _found(registry: "Registry", detector: str) -> "tuple[list[VersionInfo], list[Event], str | None]":
    """Versions, history, and the number of the reference."""
    versions, events = registry.versions(detector), registry.history(detector)
    return versions, events, reference_of(events, versions)


def promote(
    name: Name,
    version: Annotated[str, typer.Argument(help="the version's number")],
    reason: Reason,
    force: Annotated[bool, typer.Option(help="although the gate or parity refused it, or it was taken back; recorded")] = False,
) -> None:
    """Make VERSION the champion of NAME, by hand."""
    from nightowl.commands.place import settings_here
    from nightowl.registry.store import open_registry
    from nightowl.registry.version import require_version

    require_version(version)
    registry = open_registry(settings_here())
    before = registry.champion(name)
    made = registry.promote(name, version, reason, by=user_name(), force=force)
    if before is not None and before.version == made:
        print(f"{name}: version {made} is the champion already; nothing was changed")
        return
    print(f"{name}: version {made} is the champion now" + (f"; before it: version {before.version}" if before else ""))
    info = registry.version(name, made)
    if info.forced and info.record.verdict != "promote":
        print(f"by force, which is recorded; the gate had said `{info.record.verdict}`: {info.record.verdict_sentence}")


def rollback(
    name: Name,
    reason: Reason,
    to_none: Annotated[
        bool, typer.Option("--to-none", help="have no champion: the next night is judged as a first model")
    ] = False,
) -> None:
    """Take the champion of NAME back: the one before it is champion again."""
    from nightowl.commands.place import settings_here
    from nightowl.registry.store import open_registry

    registry = open_registry(settings_here())
    if to_none:
        print(f"{name}: no champion now; taken back: version {registry.withdraw(name, reason, by=user_name())}")
        return
    before = registry.champion(name)
    now = registry.rollback(name, reason, by=user_name())
    print(f"{name}: version {now} is the champion again; taken back: version {before.version if before else 'unknown'}")


def reference(
    name: Name, version: Annotated[str, typer.Argument(help="the version's number, or champion")], reason: Reason
) -> None:
    """Hold candidates of NAME against VERSION, so that steps within the margin add up to no decline; the champion stays."""
    from nightowl.commands.place import settings_here
    from nightowl.registry.store import open_registry
    from nightowl.registry.version import require_version

    require_version(version)
    registry = open_registry(settings_here())
    before = registry.reference(name)
    made = registry.set_reference(name, version, reason, by=user_name())
    assert before is not None, "without a champion it would have been refused"
    change = "already; nothing was changed" if before.version == made else f"now; before it: version {before.version}"
    print(f"{name}: version {made} is the reference {change}")


def _show(detector: str, versions: "list[VersionInfo]", events: "list[Event]", reference: str | None, engines: Engines) -> None:
    """A table on a terminal; elsewhere one line a version, tabs between, for other programs."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    rows = [(*_row(info, reference), _engines_in_words(info, engines)) for info in reversed(versions)]
    if not console.is_terminal:
        for row in rows:
            print("\t".join((detector, *row)))
        return
    shown = len(_HEADER) if console.width >= _WIDE_COLUMNS else _NARROW
    table = Table(*_HEADER[:shown], title=detector, title_justify="left")
    for row in rows:
        table.add_row(*row[:shown], style="bold" if row[1].startswith("champion") else None)
    console.print(table)
    console.print(_budget_in_words(versions), markup=False, highlight=False)
    for event in reversed(events):
        console.print(_told(event), markup=False, highlight=False)


def _budget_in_words(versions: "list[VersionInfo]") -> str:
    """What is left of the error budget of the test set that was judged on last."""
    budget = budget_left(versions)
    if budget is None:
        return "error budget: nothing was spent yet; no night has compared a candidate with a champion"
    return (
        f"error budget: {budget.left:.3g} of {budget.total:g} expected false promotions left on the test set of night "
        f"{budget.night} ({budget.num_images} images, {budget.num_decisions} decisions)"
    )


def _row(info: "VersionInfo", reference: str | None) -> tuple[str, ...]:
    record = info.record
    return (
        info.version,
        info.state
        + (", reference" if info.version == reference else "")
        + (" (forced)" if info.forced else "")
        + (" (dirty tree)" if record.dirty else ""),
        record.night_id,
        _figure(record.map50),
        _figure(record.map50_95),
        record.verdict,
        "passed" if record.parity_passed else "failed",
        f"version {record.champion_version}" if record.champion_version else "-",
        record.dataset_version[:12],
        record.code_commit[:7],
    )


def _engines_in_words(info: "VersionInfo", engines: Engines) -> str:
    """The GPUs that there are engines for; `engine pending` where TensorRT was asked for and there is none yet."""
    gpus = engines.get(info.record.onnx_sha256, [])
    if not gpus:
        return "engine pending" if "tensorrt" in info.record.formats else "-"
    return ", ".join(sorted(set(gpus)))


def _plain(versions: "list[VersionInfo]", events: "list[Event]", reference: str | None, engines: Engines) -> dict[str, object]:
    budget = budget_left(versions)
    rows = [
        info.model_dump(mode="json")
        | {"champion": info.champion, "taken_back": info.taken_back, "engines": engines.get(info.record.onnx_sha256, [])}
        for info in versions
    ]
    return {
        "versions": rows,
        "reference": reference,
        "error_budget": budget.model_dump(mode="json") if budget else None,
        "history": [event.model_dump(mode="json") for event in events],
    }


def _told(event: "Event") -> str:
    did = {"promote": "promoted", "rollback": "went back to", "withdraw": "withdrew", "reference": "took for reference"}[
        event.action
    ]
    came_from = f", from version {event.came_from}" if event.came_from and event.action != "withdraw" else ""
    note = {"done": "", "begun": " (not completed)", "abandoned": " (never came to pass)"}[event.state]
    forced = " by force" if event.forced else ""
    return f"{event.at:%Y-%m-%d %H:%M} UTC  {event.by} {did} version {event.version}{came_from}{forced}: {event.reason}{note}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
