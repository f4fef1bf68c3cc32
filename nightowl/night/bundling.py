"""From a night's working tree to a registered version."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from nightowl.night.record import Night, Pinned, workspace_in_tree
from nightowl.night.rented import account_file, rented_by
from nightowl.params import load_params
from nightowl.registry.bundle import BundleFiles, NightFacts, write_bundle
from nightowl.registry.store import Registry
from nightowl.stages.workspace import Workspace


def bundle_night(night: Night, pinned: Pinned, registry: Registry) -> str:
    """Register what the stages of the night made, and all that it depended on; returns the version."""
    workspace = workspace_in_tree(night)
    params = load_params(night.tree, night.detector)
    rented = rented_by(night)
    facts = NightFacts(
        detector=night.detector,
        night_id=night.id,
        night_key=pinned.night_key,
        created_at=night.started_at,
        code_commit=night.code_commit,
        dirty=night.dirty,
        container=rented.environment.container if rented else None,
    )
    with TemporaryDirectory(prefix="nightowl-bundle-", dir=night.folder) as scratch:
        bundle = Path(scratch) / "bundle"
        record = write_bundle(replace(bundle_files(workspace), machines=_if_there(account_file(night))), facts, params, bundle)
        return registry.register(night.detector, bundle, record)


def bundle_files(workspace: Workspace) -> BundleFiles:
    """Where the parts of a bundle lie in a working tree whose stages are done."""
    return BundleFiles(
        weights=workspace.weights,
        model=workspace.model,
        onnx=workspace.onnx,
        openvino=_if_there(workspace.openvino),
        metrics=workspace.metrics("candidate"),
        curves=workspace.curves("candidate"),
        champion_metrics=_if_there(workspace.metrics("champion")),
        champion_curves=_if_there(workspace.curves("champion")),
        operating=_if_there(workspace.operating),
        operating_test=_if_there(workspace.operating_test),
        detections=_if_there(workspace.detections("candidate")),
        truth=_if_there(workspace.truth),
        slices=_if_there(workspace.slices),
        instrument=_if_there(workspace.instrument),
        shipped_detections=_if_there(workspace.shipped_detections),
        verdict=workspace.verdict,
        parity=workspace.parity,
        speed=_if_there(workspace.speed),
        history=workspace.history,
        quarantine=workspace.quarantine,
        inputs=workspace.inputs,
        dvc_lock=workspace.root / "dvc.lock",
        requirements_lock=workspace.root / "requirements.lock",
    )


def _if_there(path: Path) -> Path | None:
    return path if path.exists() else None
