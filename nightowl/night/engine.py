"""Engines of registered versions: built here, if a GPU is here, and which of them there are."""

from pathlib import Path
from tempfile import TemporaryDirectory

from nightowl.data.source import source_folder
from nightowl.errors import DataError, RegistryError, UserError
from nightowl.export.engine_build import build_engine
from nightowl.export.engine_on_test import MeasuredImages, measured_images
from nightowl.export.engine_record import EngineRecord, Fingerprint, read_fingerprint
from nightowl.export.engine_store import EngineStore, open_engines
from nightowl.files import sha256_file
from nightowl.params import Params, parse_params
from nightowl.registry.store import Registry, open_registry
from nightowl.registry.version import VersionInfo
from nightowl.settings import Settings, home_of


def build_version(
    settings: Settings, detector: str, version: str, machine: tuple[Fingerprint, str] | None = None
) -> tuple[VersionInfo, EngineRecord]:
    """The engine of a registered version for this machine, built by the version's own params unless it is there.

    Raises:
        UserError: without TensorRT or a GPU, or where the version does not exist. StageFailed: when no engine may be published.
    """
    machine = machine or read_fingerprint()
    registry = open_registry(settings)
    info = registry.version(detector, version)
    bundle = fetch_bundle(registry, settings, info)
    export, images = params_of(bundle).export, _test_images(settings, detector, bundle)
    with TemporaryDirectory(prefix="nightowl-engine-") as scratch:
        return info, build_engine(bundle / "model.onnx", export, open_engines(settings), Path(scratch), images, machine)


def _test_images(settings: Settings, detector: str, bundle: Path) -> MeasuredImages | str:
    """The images that the version was measured on, or why this machine has not got them."""
    try:
        return measured_images(bundle, source_folder(settings, detector))
    except DataError as error:
        return str(error)


def engine_path(settings: Settings, detector: str, version: str, here: Fingerprint | None = None) -> Path:
    """The engine of a registered version for this machine, in the home.

    Raises:
        UserError: when none was built for such a machine yet.
    """
    here = here or read_fingerprint()[0]
    info = open_registry(settings).version(detector, version)
    store = open_engines(settings)
    found = store.find(info.record.onnx_sha256, here)
    if found is None:
        others = ", ".join(record.gpu for record in engines_of(store, info)) or "none"
        raise UserError(
            f"{detector} version {info.version}: engine pending for this machine ({here.key()}); there are: {others}; "
            f"build it: nightowl engine build {detector}@{info.version}"
        )
    return store.fetch(found, home_of(settings) / "engines-here" / found.engine_sha256)


def engines_of(store: EngineStore, info: VersionInfo) -> list[EngineRecord]:
    """Every engine of a registered version."""
    return [record for record in store.all() if record.onnx_sha256 == info.record.onnx_sha256]


def engines_by_onnx(settings: Settings) -> dict[str, list[str]]:
    """The names of the GPUs that there are engines for, by the SHA-256 of their ONNX."""
    found: dict[str, list[str]] = {}
    for record in open_engines(settings).all():
        found.setdefault(record.onnx_sha256, []).append(record.gpu)
    return found


def fetch_bundle(registry: Registry, settings: Settings, info: VersionInfo) -> Path:
    """The bundle of a registered version, fetched to the home once."""
    detector = info.record.detector
    folder = registry.fetch(detector, info.version, home_of(settings) / "bundles" / detector / info.version)
    if sha256_file(folder / "model.onnx") != info.record.onnx_sha256:
        raise RegistryError(f"{detector} version {info.version}: model.onnx is not the file of its record")
    return folder


def params_of(bundle: Path) -> Params:
    """The params that a version was made with."""
    from ruamel.yaml import YAML

    path = bundle / "params.yaml"
    return parse_params(YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8")), str(path))
