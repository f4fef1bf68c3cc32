"""`nightowl data`: look at a data set without training on it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightowl.commands.audit import audit, golden
from nightowl.commands.cache import app as cache_app

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from nightowl.data.dataset import SourceDataset
    from nightowl.data.findings import Finding

app = typer.Typer(no_args_is_help=True, help="Look at a data set.")
app.add_typer(cache_app, name="cache")
app.command()(audit)
app.command()(golden)

_EXAMPLES = 3


@app.callback()
def data() -> None:
    """Look at a data set."""


@app.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="the folder of a data set: YOLO, COCO JSON or Pascal VOC")],
    layout: Annotated[str, typer.Option(help="auto, yolo, coco or voc, where detection cannot tell")] = "auto",
    images: Annotated[str | None, typer.Option(help="images folder inside it, where it is not a usual one")] = None,
) -> None:
    """Say what a folder holds: its layout, classes, splits, image sizes, and what is wrong with labels and layout.

    No image is decoded for it: damage, copies across splits and the like are found by `nightowl data audit`.
    """
    import shlex

    from rich.console import Console

    from nightowl.data.check import check_boxes
    from nightowl.data.dataset import read_source
    from nightowl.params import parse_params
    from nightowl.progress import track

    given = {"layout": layout, "images": images}
    params = parse_params({"data": given}, "options").data
    dataset = read_source(path, params, track)
    checks = [
        finding for image in dataset.images for finding in check_boxes(image.path, image.size, image.boxes, dataset.classes)[1]
    ]
    console = Console(highlight=False)
    show(dataset, [*dataset.findings, *checks], console)
    told = "".join(f" --{key} {shlex.quote(value)}" for key, value in given.items() if value not in (None, "auto"))
    said = f"The pixels were not looked at; next: nightowl data audit {shlex.quote(str(path))}{told}"
    console.print(said, markup=False, soft_wrap=True)


@app.command()
def pull(
    name: Annotated[str, typer.Argument(help="the detector")],
    verify: Annotated[bool, typer.Option("--verify", help="read every file again, and replace those that are damaged")] = False,
) -> None:
    """Bring the mirror of a detector's s3:// or dvc: source to what is there now. A night does so by itself, and pins it."""
    from nightowl.commands.place import workspace_of
    from nightowl.data.source import pin_snapshot, pinned_snapshot, source_of
    from nightowl.night.sources import pull_source

    settings = workspace_of(name).settings
    report = pull_source(settings, name, source_of(settings, name), verify)
    if pinned_snapshot(settings, name) is None:
        pin_snapshot(settings, name, report.folder)
    print(report)
    print(f"snapshot  {report.folder}")


def show(dataset: "SourceDataset", findings: "Sequence[Finding]", console: "Console") -> None:
    """Print a data set and its findings."""
    console.print(f"{dataset.description}.", markup=False, soft_wrap=True)
    console.print(f"Splits: {dataset.split_rule}.", markup=False, soft_wrap=True)
    _show_classes(dataset, console)
    console.print(_sizes(dataset), markup=False, soft_wrap=True)
    _show_findings(findings, console)


def _show_classes(dataset: "SourceDataset", console: "Console") -> None:
    from collections import Counter

    from rich.markup import escape
    from rich.table import Table

    from nightowl.data.manifest import SPLITS

    boxes = Counter((i.split, b.class_id) for i in dataset.images for b in i.boxes if not b.ignore)
    table = Table("class", *SPLITS, "all")
    for column in table.columns[1:]:
        column.justify = "right"
    for index, name in enumerate(dataset.classes):
        counts = [boxes[split, index] for split in SPLITS]
        table.add_row(escape(name), *map(str, counts), str(sum(counts)))
    num_images = dataset.num_images()
    table.add_section()
    table.add_row("images", *(str(num_images[split]) for split in SPLITS), str(len(dataset.images)))
    empty = Counter(image.split for image in dataset.images if not image.boxes)
    table.add_row("of these background", *(str(empty[split]) for split in SPLITS), str(empty.total()))
    crowds = Counter(image.split for image in dataset.images for box in image.boxes if box.ignore)
    if crowds:
        table.add_row("crowds, ignored", *(str(crowds[split]) for split in SPLITS), str(crowds.total()))
    console.print(table)


def _sizes(dataset: "SourceDataset") -> str:
    from collections import Counter

    sizes = Counter(image.size for image in dataset.images)
    if len(sizes) <= _EXAMPLES:
        return "Sizes: " + ", ".join(f"{w}x{h} ({number} images)" for (w, h), number in sizes.most_common()) + "."
    smallest, largest = min(sizes, key=lambda s: s.width * s.height), max(sizes, key=lambda s: s.width * s.height)
    (w, h), number = sizes.most_common(1)[0]
    return (
        f"Sizes: {len(sizes)} different, {smallest.width}x{smallest.height} to {largest.width}x{largest.height}, "
        f"most often {w}x{h} ({number} images)."
    )


def _show_findings(findings: "Sequence[Finding]", console: "Console") -> None:
    from collections import Counter

    if not findings:
        console.print("Findings: none.")
        return
    console.print(f"Findings: {len(findings)}")
    for kind, number in sorted(Counter(finding.kind for finding in findings).items()):
        console.print(f"  {kind}: {number}")
        for finding in [finding for finding in findings if finding.kind == kind][:_EXAMPLES]:
            console.print(f"    {finding.path}: {finding.detail} ({finding.action})", markup=False, soft_wrap=True)
        if number > _EXAMPLES:
            console.print(f"    and {number - _EXAMPLES} more")
