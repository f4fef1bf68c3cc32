"""prepare: the pinned data set, verified and decoded, without what is broken.

Writes `dataset.jsonl` (a manifest of what is usable), `quarantine.json` (every finding, of pinning and of here) and
`prepare.json` (counts). An image that is gone, or is not the one that was pinned, stops it; one that does not decode is
quarantined.
"""

from collections.abc import Sequence
from pathlib import Path

from nightowl.data.findings import read_findings, write_findings
from nightowl.data.images import decode_bgr, verified_bytes
from nightowl.data.manifest import Image, read_manifest, write_manifest
from nightowl.data.prepared import prepare, require_usable
from nightowl.data.source import source_folder
from nightowl.data.threads import in_threads
from nightowl.errors import DataError
from nightowl.files import write_record
from nightowl.params import Params
from nightowl.progress import track
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
    prepared = prepare(manifest, read_findings(workspace.findings), undecodable(source, manifest.images))
    require_usable(prepared, params.prepare.max_quarantined_fraction)
    write_manifest(out / "dataset.jsonl", prepared.dataset)
    write_findings(out / "quarantine.json", list(prepared.findings))
    write_record(out / "prepare.json", prepared.summary)


def undecodable(source: Path, images: Sequence[Image]) -> dict[str, str]:
    """Path to fault of each image that does not decode whole. Raises DataError when one is gone or changed."""
    faults = in_threads(lambda image: _fault(source, image), images, "verifying images", track)
    return {image.path: fault for image, fault in zip(images, faults, strict=True) if fault is not None}


def _fault(source: Path, image: Image) -> str | None:
    content = verified_bytes(source, image)
    try:
        decode_bgr(content, image.path)
    except DataError as error:
        return str(error)
    return None


if __name__ == "__main__":
    main("prepare", run)
