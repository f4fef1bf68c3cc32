"""`nightowl evaluate`: figures from kept detections, on a part of the images or from another confidence; no model is run."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightowl.commands.predict import NAMED
from nightowl.errors import UserError

if TYPE_CHECKING:
    from nightowl.evaluation.operating_figures import Figures
    from nightowl.evaluation.question import Answer
    from nightowl.evaluation.rates import Rate


def evaluate(
    source: Annotated[str, typer.Argument(help="a detector (its last evaluation here), NAME@champion, NAME@7, or a folder")],
    slice_name: Annotated[str | None, typer.Option("--slice", help="only the images of this slice of params")] = None,
    pattern: Annotated[str | None, typer.Option(help="only images whose path matches this regular expression")] = None,
    confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="from where a detection counts; default: the model's operating point")
    ] = None,
    max_detections: Annotated[int, typer.Option(min=1, help="an image and class")] = 300,
) -> None:
    """Print what a model's kept detections on test are worth."""
    from nightowl.evaluation.question import answer, narrow, read_kept

    _check(pattern)
    kept = narrow(read_kept(_folder(source)), slice_name, pattern)
    for line in _lines(answer(kept, confidence, max_detections)):
        print(line)


def _check(pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise UserError(f"--pattern {pattern}: not a regular expression: {error}") from error


def _folder(source: str) -> Path:
    """Where the detections lie. Raises UserError, RegistryError or ParamsError when there is no such place."""
    from nightowl.commands.place import settings_here, workspace_of

    if Path(source).is_dir():
        return Path(source)
    named = NAMED.fullmatch(source)
    if named is None:
        return workspace_of(source).out("evaluate")
    from nightowl.registry.store import open_registry
    from nightowl.settings import home_of

    settings = settings_here()
    registry, detector = open_registry(settings), named["detector"]
    version = registry.version(detector, named["version"]).version
    return registry.fetch(detector, version, home_of(settings) / "bundles" / detector / version)


def _lines(found: "Answer") -> list[str]:
    metrics = found.measured.metrics
    overall = (metrics.map50, metrics.map75, metrics.map50_95, metrics.ar.ar100 if metrics.ar else None)
    rows = [
        f"{metrics.num_images} images, {metrics.num_truth} objects",
        f"{'':<20}{'objects':>8}{'AP50':>8}{'AP75':>8}{'AP50-95':>8}{'AR100':>8}",
        _row("all classes", metrics.num_truth, overall),
        *(_row(c.name, c.num_truth, (c.ap50, c.ap75, c.ap50_95, c.ar.ar100 if c.ar else None)) for c in metrics.classes),
        *(_row(f"{one.size} objects", one.num_truth, (one.ap50, None, one.ap50_95, one.ar100)) for one in metrics.sizes),
    ]
    if found.rates is None:
        return [*rows, "no operating point: name one with --confidence"]
    return [*rows, *(_rates(figures) for figures in (found.rates.overall, *found.rates.classes))]


def _row(name: str, num_truth: int, figures: tuple[float | None, ...]) -> str:
    return f"{name:<20}{num_truth:>8}" + "".join(f"{'-' if f is None else format(f, '.3f'):>8}" for f in figures)


def _rates(figures: "Figures") -> str:
    at = "" if figures.confidence is None else f" from {figures.confidence:.3f}"
    parts = {
        "missed": figures.miss,
        "false positives an image": figures.false_positives,
        "escaped": figures.escape,
        "overkill": figures.overkill,
    }
    return f"{figures.name or 'all classes'}{at}: " + ", ".join(f"{name} {_rate(rate)}" for name, rate in parts.items())


def _rate(rate: "Rate") -> str:
    if rate.value is None or rate.interval is None:
        return "unknown (none to count)"
    return f"{rate.value:.3g} ({rate.events} of {rate.trials}, {rate.interval.low:.3g} to {rate.interval.high:.3g})"
