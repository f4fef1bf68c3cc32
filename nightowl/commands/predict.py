"""`nightowl predict`: a registered model, or an exported file, on one's own images."""

import re
from pathlib import Path
from typing import Annotated

import typer

from nightowl.errors import UserError

NAMED = re.compile(r"(?P<detector>[a-z0-9][a-z0-9_-]*)@(?P<version>[A-Za-z0-9_-]+)")


def predict(
    images: Annotated[list[Path], typer.Argument(help="images to look at")],
    model: Annotated[str, typer.Option(help="NAME@champion, NAME@7, or an exported file.onnx")],
    output: Annotated[Path, typer.Option(help="folder for drawn images and predictions.json")] = Path("predictions"),
    confidence: Annotated[
        float | None, typer.Option(help="from where a detection counts, 0 to 1; default: the model's operating point")
    ] = None,
) -> None:
    """Find objects in IMAGES, draw them, and write them down as JSON. Exits 2 when an image could not be read."""
    from nightowl.evaluation.predict import predict as run
    from nightowl.evaluation.runners import OnnxRunner

    _check(images, output)
    result = run(OnnxRunner(resolve_model(model)), model, images, confidence, output)
    for image in result.images:
        found = image.error if image.detections is None else _summary([d.class_name for d in image.detections])
        print(found if image.error else f"{image.image}: {found}")
    print(f"drawn images and predictions.json are in {output}")
    if result.num_failed:
        print(f"{result.num_failed} of {len(images)} images could not be read")
        raise typer.Exit(UserError.exit_code)


def resolve_model(model: str) -> Path:
    """The ONNX file that `model` names: a file, or a registered version, fetched to the home once.

    Raises:
        UserError: when it is neither; RegistryError when there is no such version.
    """
    if model.endswith(".onnx"):
        return Path(model)
    named = NAMED.fullmatch(model)
    if named is None:
        raise UserError(f"--model {model}: expected NAME@champion, NAME@7 (a version), or a path that ends in .onnx")
    from nightowl.commands.place import settings_here
    from nightowl.registry.store import open_registry
    from nightowl.settings import home_of

    settings = settings_here()
    registry, detector = open_registry(settings), named["detector"]
    version = registry.version(detector, named["version"]).version
    return registry.fetch(detector, version, home_of(settings) / "bundles" / detector / version) / "model.onnx"


def _check(images: list[Path], output: Path) -> None:
    """Everything that can be seen wrong before a model is loaded, all at once. Raises UserError."""
    faults = [f"{path}: no such image" for path in images if not path.exists()]
    faults += [f"{path}: a folder; name the images in it, for instance {path}/*.jpg" for path in images if path.is_dir()]
    if output.exists() and not output.is_dir():
        faults.append(f"--output {output}: expected a folder, found a file")
    if faults:
        raise UserError("\n".join(faults))


def _summary(names: list[str]) -> str:
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing found"
