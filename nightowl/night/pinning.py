"""Pinning: read the source, the registry and the base weights once, and write down what they are.

After it, nothing that a night depends on can change under it, and nothing surprises a laptop: stages see only what is pinned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nightowl.cloud.mirror import PullReport
from nightowl.data.figures import figures_of
from nightowl.data.findings import Finding, write_findings
from nightowl.data.golden import GoldenImage, golden_text, read_golden
from nightowl.data.image_table import read_columns
from nightowl.data.manifest import Manifest, write_manifest
from nightowl.data.pin import build_manifest
from nightowl.evaluation.budget import write_history
from nightowl.evaluation.champion import ChampionRecord, write_champion
from nightowl.evaluation.slices import SliceFacts
from nightowl.files import publishing_folder, write_atomic, write_record
from nightowl.night.figures import champion_figures, keep_figures
from nightowl.night.sources import carry_known, fetch_source, pins_cache, remember_source
from nightowl.params import Params
from nightowl.registry.decisions import decisions_of
from nightowl.registry.record import BundleRecord
from nightowl.registry.restore import champion_record, fetch_champion_blobs, reference_record
from nightowl.registry.store import Registry
from nightowl.settings import home_of
from nightowl.stages.workspace import Workspace
from nightowl.training.base import BaseWeights
from nightowl.training.weights import pin_base


@dataclass(frozen=True)
class PinnedInputs:
    """What was written to inputs/<detector>/."""

    manifest: Manifest
    dataset_version: str
    findings: tuple[Finding, ...]
    base: BaseWeights
    champion: ChampionRecord | None
    pulled: PullReport | None


def pin_inputs(workspace: Workspace, params: Params, registry: Registry, source: str | None = None) -> PinnedInputs:
    """Pin the detector's inputs, all of them or none. `source` names where its data lies, and is remembered; what is remote is
    pulled.

    Raises:
        DataError, RemoteError, WeightsError, RegistryError: and then what was pinned before stands.
    """
    home, detector = home_of(workspace.settings), workspace.detector
    local = fetch_source(workspace.settings, detector, source)
    carry_known(workspace.settings, detector, local)
    golden = read_golden(workspace.golden_source)
    manifest, findings = build_manifest(local.folder, params.data, pins_cache(workspace.settings, detector), golden=golden)
    slice_facts = _slice_facts(params, local.folder, manifest, golden)
    version = manifest.version()
    champion = champion_record(registry, detector)
    if champion is not None:
        fetch_champion_blobs(registry, champion, home / "blobs")
    reference = reference_record(registry, detector)
    if reference is not None:
        fetch_champion_blobs(registry, reference, home / "blobs")
    made = registry.record(detector, champion.version) if champion else None
    base = _base(workspace, params, champion, made, version)
    previous = champion_figures(registry, champion, home) if champion else None
    keep_figures(home, figures_of(manifest))
    with publishing_folder(workspace.inputs) as scratch:
        write_manifest(scratch / workspace.manifest.name, manifest)
        write_findings(scratch / workspace.findings.name, findings)
        write_record(scratch / workspace.base.name, base)
        write_champion(scratch / workspace.champion.name, champion)
        write_champion(scratch / workspace.reference.name, reference)
        write_history(scratch / workspace.decisions.name, decisions_of(registry.versions(detector)))
        write_record(scratch / workspace.slice_facts.name, slice_facts)
        write_atomic(scratch / workspace.golden.name, golden_text(golden))
        write_atomic(scratch / workspace.previous.name, (previous.model_dump_json(indent=2) if previous else "null") + "\n")
    remember_source(workspace.settings, detector, local, named=source is not None)
    return PinnedInputs(manifest, version, tuple(findings), base, champion, local.pulled)


def _slice_facts(params: Params, source: Path, manifest: Manifest, golden: Sequence[GoldenImage]) -> SliceFacts:
    """What slices need of the images: the columns that rules name, and the golden digests."""
    columns = read_columns(source, params.evaluate.slices, [image.path for image in manifest.images])
    return SliceFacts(columns=columns, golden=tuple(image.sha256 for image in golden))


def _base(
    workspace: Workspace, params: Params, champion: ChampionRecord | None, made: BundleRecord | None, version: str
) -> BaseWeights:
    """A warm start is renewed only when data or params change; else each promotion would be a reason to train again."""
    unchanged = made is not None and made.dataset_version == version and made.params_sha256 == params.digest()
    if params.train.base == "champion" and made is not None and unchanged and made.base.kind == "champion":
        return made.base
    return pin_base(params.train.base, workspace.settings, champion.weights_sha256 if champion else None, workspace.root)
