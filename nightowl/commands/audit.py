"""`nightowl data audit` and `nightowl data golden`: what is wrong with a data set, and which images are never trained on."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from nightowl.data.findings import Finding
    from nightowl.data.look_store import LookStore
    from nightowl.data.manifest import Manifest
    from nightowl.data.prepared import Beside, Prepared
    from nightowl.params import Params
    from nightowl.stages.workspace import Workspace


_EXAMPLES = 2


@dataclass(frozen=True)
class Audited:
    """A data set in `source`, as pinned and as prepared, and whether a night on it would stop: why, or None."""

    source: Path
    manifest: "Manifest"
    prepared: "Prepared"
    stops: str | None


def audit(
    target: Annotated[str, typer.Argument(help="a folder of a data set, or a detector (a folder of its name is ./NAME)")],
    layout: Annotated[str, typer.Option(help="of a folder: auto, yolo, coco or voc")] = "auto",
    images: Annotated[str | None, typer.Option(help="of a folder: its images folder, where it is not a usual one")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="write every finding here")] = None,
    html_file: Annotated[Path | None, typer.Option("--html", help="write a page with examples here")] = None,
) -> None:
    """Find what is wrong with a data set; nothing in it is written. Ends with 1 when a policy says that a night would stop."""
    from rich.console import Console

    from nightowl.data.audit import AuditFile
    from nightowl.files import write_atomic, write_record
    from nightowl.params import parse_params
    from nightowl.report.audit import audit_page, view_of

    workspace = _detector(target)
    given = parse_params({"data": {"layout": layout, "images": images}}, "options")
    found = _audit_detector(workspace) if workspace else _audit_folder(Path(target), given)
    show(found, Console(highlight=False))
    if json_file:
        write_record(json_file, AuditFile(audit=found.prepared.audit, findings=found.prepared.findings))
    if html_file:
        view = view_of(found.prepared.audit, found.prepared.findings, found.manifest, found.source)
        write_atomic(html_file, audit_page(view, target, found.stops).encode("utf-8", "backslashreplace"))
    if found.stops:
        raise typer.Exit(1)


def golden(
    name: Annotated[str, typer.Argument(help="the detector")],
    fraction: Annotated[float, typer.Option(min=0.0, max=1.0, help="of the test images that are pinned now")] = 0.2,
    list_file: Annotated[Path | None, typer.Option("--list", help="a file of image paths, one a line, instead")] = None,
) -> None:
    """Write detectors/NAME/golden.txt: images that only ever test, from the next pinning on. Commit it."""
    from nightowl.commands.place import workspace_of
    from nightowl.data.formats.listing import read_lines
    from nightowl.data.golden import choose_golden, golden_text, listed_golden
    from nightowl.data.manifest import read_manifest
    from nightowl.errors import DataError
    from nightowl.files import write_atomic

    workspace = workspace_of(name)
    path, dataset = workspace.golden_source, read_manifest(workspace.manifest)
    if path.exists():
        raise DataError(f"{path}: there is a golden set already; it is meant to stay: remove the file to choose another")
    lines = read_lines(list_file.absolute().parent, list_file.absolute()) if list_file else None
    chosen = choose_golden(dataset, fraction) if lines is None else listed_golden(dataset, lines)
    write_atomic(path, golden_text(chosen))
    print(f"wrote {len(chosen)} golden images to {path}")
    print(f"next: git add {path.relative_to(workspace.root)} && git commit; it counts from the next night on")


def show(found: Audited, console: "Console") -> None:
    """Print an audit: a table by severity, drift, and whether a night would stop."""
    from rich.table import Table

    audit = found.prepared.audit
    counts = ", ".join(f"{number} {split}" for split, number in found.prepared.dataset.num_images().items())
    console.print(f"{audit.num_images} images audited; {counts} are usable.", soft_wrap=True)
    table = Table("severity", "kind", "found", "files", "policy")
    for row in audit.rows:
        policy = f"{row.policy}: stops" if row.fails else row.policy
        table.add_row(row.severity, row.kind, str(row.num_findings), str(row.num_files), policy)
    console.print(table if audit.rows else "Nothing was found.")
    for row in audit.rows:
        for finding in [finding for finding in found.prepared.findings if finding.kind == row.kind][:_EXAMPLES]:
            said = f"{finding.path}: {finding.detail} ({finding.action})"
            console.print(f"  {row.kind}: {said}", markup=False, soft_wrap=True)
    for drift in audit.drift if audit.compared_with else ():
        console.print(f"Drift of {drift.what}: {drift.sentence}.", markup=False, soft_wrap=True)
    console.print(f"A night would stop: {found.stops}" if found.stops else "A night would go on.", markup=False, soft_wrap=True)


def _detector(target: str) -> "Workspace | None":
    """The workspace of the detector of that name, where the current folder is in a checkout that has one."""
    from nightowl.commands.place import workspace_of
    from nightowl.errors import UserError
    from nightowl.params import DETECTOR_NAME

    if not DETECTOR_NAME.fullmatch(target):
        return None
    try:
        return workspace_of(target)
    except UserError:
        if Path(target).is_dir():
            return None
        raise


def _audit_folder(folder: Path, params: "Params") -> Audited:
    from nightowl.data.look_store import LookStore
    from nightowl.data.pin import build_manifest
    from nightowl.data.prepared import Beside

    with TemporaryDirectory(prefix="nightowl-audit-") as scratch:
        manifest, findings = build_manifest(folder, params.data, Path(scratch) / "pins.json")
    return _audited(folder, manifest, findings, params, LookStore(None), Beside())


def _audit_detector(workspace: "Workspace") -> Audited:
    from nightowl.data.golden import read_golden
    from nightowl.data.look_store import LookStore
    from nightowl.data.pin import build_manifest
    from nightowl.data.prepared import Beside
    from nightowl.data.source import source_folder
    from nightowl.night.sources import pins_cache
    from nightowl.params import load_params
    from nightowl.settings import home_of
    from nightowl.stages.prepare import read_previous

    params, settings, name = load_params(workspace.root, workspace.detector), workspace.settings, workspace.detector
    source, golden = source_folder(settings, name), read_golden(workspace.golden_source)
    manifest, findings = build_manifest(source, params.data, pins_cache(settings, name), golden=golden)
    previous = read_previous(workspace.previous) if workspace.previous.exists() else None
    return _audited(source, manifest, findings, params, LookStore(home_of(settings)), Beside(golden, previous))


def _audited(
    source: Path,
    manifest: "Manifest",
    findings: "list[Finding]",
    params: "Params",
    store: "LookStore",
    beside: "Beside",
) -> Audited:
    from nightowl.data.looks import looks_of
    from nightowl.data.prepared import prepare, require_usable
    from nightowl.errors import DataError

    looks = looks_of(source, manifest.images, store)
    prepared = prepare(manifest, findings, looks, params.prepare.audit, beside)
    try:
        require_usable(prepared, params.prepare.max_quarantined_fraction)
    except DataError as error:
        return Audited(source, manifest, prepared, str(error))
    return Audited(source, manifest, prepared, None)
