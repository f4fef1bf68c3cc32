"""prepare: the pinned data set, audited and decoded, without what is broken or leaks.

Writes `dataset.jsonl` (a manifest of what is usable), `quarantine.json` (every finding, of pinning and of here), `audit.json`
(findings by kind, severity and policy, and drift), `barred.txt` (what may never be trained on) and `prepare.json` (counts). An
image that is gone, or is not the one that was pinned, stops it, and so does a finding whose policy is to fail.
"""

import sys
from pathlib import Path

from pydantic import TypeAdapter

from nightowl.data.figures import DatasetFigures
from nightowl.data.findings import read_findings, write_findings
from nightowl.data.golden import golden_text, read_golden
from nightowl.data.look_store import LookStore
from nightowl.data.looks import looks_of
from nightowl.data.manifest import read_manifest, write_manifest
from nightowl.data.prepared import Beside, PrepareSummary, prepare, require_usable
from nightowl.data.source import source_folder
from nightowl.errors import DataError, remedy
from nightowl.files import write_atomic, write_record
from nightowl.params import Params
from nightowl.settings import home_of
from nightowl.stages.frame import main
from nightowl.stages.workspace import Workspace


def run(params: Params, workspace: Workspace, out: Path) -> None:
    """Write the prepared data set into `out`. Raises DataError when the data cannot be used, or is not what was pinned."""
    manifest = read_manifest(workspace.manifest)
    if manifest.data_params != params.data.digest():
        raise DataError(
            f"{workspace.manifest}: pinned under other `data` params than those of detectors/{workspace.detector}/params.yaml "
            f"now; pin again: nightowl inputs pin {workspace.detector}"
        )
    source = source_folder(workspace.settings, workspace.detector)
    looks = looks_of(source, manifest.images, LookStore(home_of(workspace.settings)))
    beside = Beside(read_golden(workspace.golden), read_previous(workspace.previous))
    prepared = prepare(manifest, read_findings(workspace.findings), looks, params.prepare.audit, beside)
    require_usable(prepared, params.prepare.max_quarantined_fraction)
    write_manifest(out / "dataset.jsonl", prepared.dataset)
    write_findings(out / "quarantine.json", list(prepared.findings))
    write_record(out / "audit.json", prepared.audit)
    write_atomic(out / "barred.txt", golden_text(prepared.barred))
    write_record(out / "prepare.json", prepared.summary)
    print(_left_out(prepared.summary), end="", file=sys.stderr)


def _left_out(summary: PrepareSummary) -> str:
    """A line of what was pinned and is not used, or not as it was; empty where there is nothing such."""
    images, boxes, clipped = summary.quarantined_images, summary.quarantined_boxes, summary.clipped_boxes
    if not (images or boxes or clipped):
        return ""
    counts = f"{_counted(images, 'image')} and {_counted(boxes, 'box', 'es')}; clipped: {_counted(clipped, 'box', 'es')}"
    return f"quarantined: {counts}; see Audit in the report\n"


def _counted(number: int, noun: str, ending: str = "s") -> str:
    """The number with its noun, which takes `ending` unless it is one."""
    return f"{number} {noun}{'' if number == 1 else ending}"


def read_previous(path: Path) -> DatasetFigures | None:
    """The pinned figures of the champion's data, None while there is no champion. Raises DataError when they are not pinned."""
    try:
        return TypeAdapter(DatasetFigures | None).validate_json(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{path}: not pinned; {remedy(path)}") from None
    except ValueError as error:
        raise DataError(f"{path}: not the figures of a data set ({error}); pin the inputs again") from error


if __name__ == "__main__":
    main("prepare", run)
