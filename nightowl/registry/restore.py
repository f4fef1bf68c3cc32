"""Back from the registry into a checkout: the champion for tonight's comparison, and the inputs of a past night."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from nightowl.data.blobs import BlobStore
from nightowl.errors import RegistryError
from nightowl.evaluation.champion import read_champion
from nightowl.files import publishing_folder
from nightowl.registry.bundle import PINNED
from nightowl.registry.record import BundleRecord, ChampionRecord
from nightowl.registry.store import Registry
from nightowl.registry.version import VersionInfo
from nightowl.training.base import BaseWeights


def champion_record(registry: Registry, detector: str) -> ChampionRecord | None:
    """The champion as it is pinned for a night, or None while there is none."""
    return _record_of(detector, registry.champion(detector))


def reference_record(registry: Registry, detector: str) -> ChampionRecord | None:
    """The reference as it is pinned for a night, or None before the first champion."""
    return _record_of(detector, registry.reference(detector))


def _record_of(detector: str, info: VersionInfo | None) -> ChampionRecord | None:
    if info is None:
        return None
    record = info.record
    return ChampionRecord(
        detector=detector,
        version=info.version,
        night_key=record.night_key,
        classes=record.classes,
        image_size=record.image_size,
        weights_sha256=record.weights_sha256,
        onnx_sha256=record.onnx_sha256,
        dataset_version=record.dataset_version,
        detections_sha256=record.detections_sha256,
        instrument=record.instrument,
    )


def fetch_champion_blobs(registry: Registry, champion: ChampionRecord, blobs: Path) -> None:
    """Put weights, ONNX and kept detections of a champion (or reference) into the blob store at `blobs`, unless they are there.

    Raises:
        RegistryError: when its bundle is damaged or cannot be had.
    """
    wanted = [champion.weights_sha256, champion.onnx_sha256]
    if champion.detections_sha256 is not None:
        wanted += [champion.detections_sha256, champion.dataset_version]
    _fetch_blobs(registry, champion.detector, champion.version, tuple(wanted), blobs)


def restore_inputs(registry: Registry, detector: str, version: str, root: Path) -> None:
    """Write `inputs/<detector>/` below `root` as `version` had them, all or none, with the blobs that they name.

    Raises:
        RegistryError: when there is no such version, its bundle is damaged, or a champion that it names has gone.
    """
    blobs = registry.home / "blobs"
    with TemporaryDirectory(prefix="nightowl-restore-") as scratch:
        pinned = registry.fetch(detector, version, Path(scratch) / "bundle") / "inputs"
        for name in ("champion.json", "reference.json"):
            standing = read_champion(pinned / name)
            if standing is not None:
                fetch_champion_blobs(registry, standing, blobs)
        base = BaseWeights.model_validate_json((pinned / "base.json").read_bytes())
        if base.kind == "champion" and base.sha256 is not None:
            _fetch_base(registry, detector, base.sha256, blobs)
        with publishing_folder(root / "inputs" / detector) as folder:
            for name in PINNED:
                shutil.copyfile(pinned / name, folder / name)


def _fetch_base(registry: Registry, detector: str, sha256: str, blobs: Path) -> None:
    made = [info.version for info in registry.versions(detector) if info.record.weights_sha256 == sha256]
    if not made:
        raise RegistryError(f"{detector}: the base weights {sha256[:12]} are of a champion that is no longer registered")
    _fetch_blobs(registry, detector, made[0], (sha256,), blobs)


def _fetch_blobs(registry: Registry, detector: str, version: str, wanted: tuple[str, ...], blobs: Path) -> None:
    store = BlobStore(blobs)
    if all(store.has(sha256) for sha256 in wanted):
        return
    record = registry.record(detector, version)
    with TemporaryDirectory(prefix="nightowl-fetch-") as scratch:
        bundle = registry.fetch(detector, version, Path(scratch) / "bundle")
        for name, sha256 in _blobs_of(record).items():
            if store.put(bundle / name) != sha256:
                raise RegistryError(
                    f"{detector} version {version}: {name} is not the file of its record; the bundle is damaged"
                )


def _blobs_of(record: BundleRecord) -> dict[str, str]:
    files = {"weights.pt": record.weights_sha256, "model.onnx": record.onnx_sha256}
    if record.detections_sha256 is not None:
        files |= {"shipped_detections.parquet": record.detections_sha256, "inputs/manifest.jsonl": record.dataset_version}
    return files
