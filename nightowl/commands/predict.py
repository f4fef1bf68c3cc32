"""`nightowl predict`: a registered model in any of its formats, or a file, on one's own images."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightowl.errors import UserError
from nightowl.registry.sums import verify_as_listed

if TYPE_CHECKING:
    from nightowl.registry.record import BundleRecord

NAMED = re.compile(r"(?P<detector>[a-z0-9][a-z0-9_-]*)(@(?P<version>[A-Za-z0-9_-]+))?")

FORMATS = {"onnx": ".onnx", "openvino": ".xml", "tensorrt": ".engine"}


def predict(
    images: Annotated[list[Path], typer.Argument(help="images, or folders of images")],
    model: Annotated[
        str,
        typer.Option(
            help="NAME (its champion), NAME@7, a bundle's folder, or a file: .onnx, .xml (OpenVINO), .engine (TensorRT)"
        ),
    ],
    output: Annotated[Path, typer.Option(help="folder for drawn images and predictions.json")] = Path("predictions"),
    confidence: Annotated[
        float | None, typer.Option(help="from where a detection counts, 0 to 1; default: the model's operating point")
    ] = None,
    model_format: Annotated[
        str | None, typer.Option("--format", help="of a registered model: onnx (default), openvino, tensorrt")
    ] = None,
) -> None:
    """Find objects in IMAGES, draw them, and write them down as JSON. Exits 2 when an image could not be read."""
    from nightowl.evaluation.predict import predict as run
    from nightowl.export.artefact import open_artefact

    _check(images, output)
    path, name = resolve_model(model, model_format)
    result = run(open_artefact(path), name, images, confidence, output)
    for image in result.images:
        found = image.error if image.detections is None else _summary([d.class_name for d in image.detections])
        print(found if image.error else f"{image.image}: {found}")
    print(f"drawn images and predictions.json are in {output}")
    if result.num_failed:
        print(f"{result.num_failed} of {len(result.images)} images could not be read")
        raise typer.Exit(UserError.exit_code)


def bundle(
    model: Annotated[str, typer.Argument(help="NAME (its champion) or NAME@7")],
    output: Annotated[Path, typer.Option(help="a new or empty folder")],
) -> None:
    """Bring the bundle of a registered version to a folder, checked file by file, to copy it to where it runs."""
    from nightowl.commands.place import settings_here
    from nightowl.registry.store import open_registry
    from nightowl.registry.version import require_version

    named = NAMED.fullmatch(model)
    if named is None:
        raise UserError(f"{model}: expected NAME (its champion) or NAME@7 (a version)")
    alias = require_version(named["version"] or "champion")
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise UserError(f"--output {output}: expected a new or an empty folder, found something there; it was not touched")
    registry = open_registry(settings_here())
    version = registry.version(named["detector"], alias).version
    registry.fetch(named["detector"], version, output)
    print(f"{named['detector']} version {version} is in {output}; every file is as its SHA256SUMS says")


def resolve_model(model: str, model_format: str | None = None) -> tuple[Path, str]:
    """The file that `model` names, and its name in records, which is that of one version: a file, one in a bundle's folder, or
    a registered version in a format, fetched to the home once.

    Raises:
        UserError: when it is neither, or has not that format; RegistryError when there is no such version.
    """
    if model_format not in (None, *FORMATS):
        raise UserError(f"--format {model_format}: expected one of {', '.join(FORMATS)}")
    if model.endswith(tuple(FORMATS.values())):
        if model_format is not None and not model.endswith(FORMATS[model_format]):
            raise UserError(f"--format {model_format}: {model} is another; leave --format out for a file")
        return _as_listed(Path(model)), model
    if (Path(model) / "record.json").is_file():
        path = Path(model) / f"model{FORMATS[model_format or 'onnx']}"
        if not path.is_file():
            raise UserError(f"--model {model}: this bundle has no {path.name}")
        return _as_listed(path), str(path)
    named = NAMED.fullmatch(model)
    if named is None:
        raise UserError(
            f"--model {model}: expected NAME@champion, NAME@7 (a version), the folder of a bundle, or a path that ends in "
            f"{', '.join(FORMATS.values())}"
        )
    return _registered(named["detector"], named["version"] or "champion", model_format or "onnx")


def _as_listed(path: Path) -> Path:
    """The file itself, unless the SHA256SUMS beside it lists another; what comes from the registry was held against them."""
    for part in (path, path.with_suffix(".bin")):
        verify_as_listed(part)
    return path


def _registered(detector: str, alias: str, model_format: str) -> tuple[Path, str]:
    from nightowl.commands.place import settings_here
    from nightowl.export.engine_record import read_fingerprint
    from nightowl.night.engine import engine_path, fetch_bundle
    from nightowl.registry.store import open_registry
    from nightowl.registry.version import require_version

    require_version(alias)
    machine = read_fingerprint()[0] if model_format == "tensorrt" else None  # refused at once where there is none
    settings = settings_here()
    registry = open_registry(settings)
    info = registry.version(detector, alias)
    name = f"{detector}@{info.version}"
    if machine is not None:
        return engine_path(settings, detector, info.version, machine), name
    path = fetch_bundle(registry, settings, info) / f"model{FORMATS[model_format]}"
    if not path.is_file():
        raise UserError(f"{detector} version {info.version} has no {model_format}: {_why_not(info.record, model_format)}")
    return path, name


def _why_not(record: "BundleRecord", model_format: str) -> str:
    if model_format in record.left_out:
        return f"it did not keep its limits and was left out ({'; '.join(record.left_out[model_format])})"
    return "params did not ask for it; add it to export.formats for the next night"


def _check(images: list[Path], output: Path) -> None:
    """Everything that can be seen wrong before a model is loaded, all at once. Raises UserError."""
    faults = [f"{path}: no such image" for path in images if not path.exists()]
    if output.exists() and not output.is_dir():
        faults.append(f"--output {output}: expected a folder, found a file")
    if faults:
        raise UserError("\n".join(faults))


def _summary(names: list[str]) -> str:
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing found"
