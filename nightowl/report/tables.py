"""The tables of a report, worked out: which row stands beside which, what differs, how dark a cell is.

Pure. A figure that was not measured stays None, and so does any difference with it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nightowl.data.findings import Finding
from nightowl.evaluation.metrics import ClassMetrics, Curves, Metrics
from nightowl.report.chart import Chart, line_chart
from nightowl.report.content import Series

MAX_MATRIX_CLASSES = 25
MAX_CONFUSIONS = 30
MAX_PANELS = 12


@dataclass(frozen=True)
class Compared:
    """One figure of candidate and champion."""

    name: str
    candidate: float | None
    champion: float | None

    @property
    def difference(self) -> float | None:
        return None if self.candidate is None or self.champion is None else self.candidate - self.champion


@dataclass(frozen=True)
class ClassRow:
    name: str
    metrics: ClassMetrics
    ap50: Compared
    ap50_95: Compared


@dataclass(frozen=True)
class PartRow:
    """The objects of one size, or the images of one slice; a size has no `num_images` of its own (None)."""

    name: str
    num_images: int | None
    num_truth: int
    map50: Compared
    map50_95: Compared


@dataclass(frozen=True)
class Cell:
    """A count of the confusion matrix; `share` (0 to 1) is how dark it is, `title` says it in words."""

    count: int
    share: float
    right: bool
    title: str


@dataclass(frozen=True)
class Confusion:
    """One kind of error: `count` objects of `true` taken for `predicted`; None is nothing there, or nothing said."""

    true: str | None
    predicted: str | None
    count: int


def same_classes(candidate: Metrics, champion: Metrics | None) -> bool:
    """Whether the overall figures of both are over the same classes; else their difference would mean nothing."""
    return champion is not None and {c.name for c in candidate.classes} == {c.name for c in champion.classes}


def overall_rows(candidate: Metrics, champion: Metrics | None) -> tuple[Compared, ...]:
    """mAP50, mAP75, mAP50-95; without the champion's where it knows other classes."""
    other = champion if same_classes(candidate, champion) else None
    return (
        Compared("mAP50", candidate.map50, other.map50 if other else None),
        Compared("mAP75", candidate.map75, other.map75 if other else None),
        Compared("mAP50-95", candidate.map50_95, other.map50_95 if other else None),
    )


def class_rows(candidate: Metrics, champion: Metrics | None) -> tuple[ClassRow, ...]:
    """The candidate's classes in their order, each beside the champion's of the same name."""
    others = {c.name: c for c in champion.classes} if champion else {}
    rows = []
    for own in candidate.classes:
        other = others.get(own.name)
        ap50 = Compared("AP50", own.ap50, other.ap50 if other else None)
        ap50_95 = Compared("AP50-95", own.ap50_95, other.ap50_95 if other else None)
        rows.append(ClassRow(own.name, own, ap50, ap50_95))
    return tuple(rows)


def part_rows(candidate: Metrics, champion: Metrics | None) -> tuple[PartRow, ...]:
    """Sizes, then slices, each beside the champion's of the same name; without those where it knows other classes."""
    other = champion if same_classes(candidate, champion) else None
    sizes = {one.size: one for one in other.sizes} if other else {}
    slices = {one.name: one for one in other.slices} if other else {}
    rows = []
    for size in candidate.sizes:
        was = sizes.get(size.size)
        low = Compared("mAP50", size.ap50, was.ap50 if was else None)
        rows.append(PartRow(size.size, None, size.num_truth, low, _all_ious(size.ap50_95, was.ap50_95 if was else None)))
    for part in candidate.slices:
        same = slices.get(part.name)
        low = Compared("mAP50", part.map50, same.map50 if same else None)
        both = _all_ious(part.map50_95, same.map50_95 if same else None)
        rows.append(PartRow(part.name, part.num_images, part.num_truth, low, both))
    return tuple(rows)


def _all_ious(candidate: float | None, champion: float | None) -> Compared:
    return Compared("mAP50-95", candidate, champion)


def confusion_cells(curves: Curves) -> tuple[tuple[Cell, ...], ...]:
    """Rows: predicted, the last nothing; columns: true, the last no object. As dark as its share of the true class; in the
    last column, as its share of what was predicted as the class."""
    names, counts = curves.classes, curves.confusion
    column_sums = [sum(row[column] for row in counts) for column in range(len(names))]
    return tuple(
        tuple(_cell(names, i, j, count, column_sums[j] if j < len(names) else sum(row)) for j, count in enumerate(row))
        for i, row in enumerate(counts)
    )


def _cell(names: Sequence[str], predicted: int, true: int, count: int, whole: int) -> Cell:
    num = len(names)
    share = count / whole if whole else 0.0
    if true == num:
        title = f"{count} of {whole} detections of {names[predicted]} with no object" if predicted < num else ""
    elif predicted == num:
        title = f"{count} of {whole} {names[true]} missed"
    else:
        title = f"{count} of {whole} {names[true]} detected as {names[predicted]}"
    return Cell(count, share, predicted == true, title)


def worst_confusions(curves: Curves) -> tuple[Confusion, ...]:
    """The most frequent errors, for a matrix too large to print."""
    names: list[str | None] = [*curves.classes, None]
    errors = [
        Confusion(names[j], names[i], count)
        for i, row in enumerate(curves.confusion)
        for j, count in enumerate(row)
        if i != j and count
    ]
    return tuple(sorted(errors, key=lambda error: -error.count)[:MAX_CONFUSIONS])


@dataclass(frozen=True)
class Panel:
    """The PR curve of one class; `chart` is None where it could not be measured."""

    name: str
    ap50: Compared
    chart: Chart | None


def pr_panels(rows: Sequence[ClassRow], curves: Curves, champion: Curves | None) -> tuple[Panel, ...]:
    """PR curves at IoU 0.5, at most MAX_PANELS: then those of the lowest AP50, the ones to look at."""
    shown = {row.name for row in sorted(rows, key=lambda row: _lowest_first(row.ap50.candidate))[:MAX_PANELS]}
    return tuple(Panel(row.name, row.ap50, pr_chart(row.name, curves, champion)) for row in rows if row.name in shown)


def pr_chart(name: str, curves: Curves, champion: Curves | None) -> Chart | None:
    """The PR curve of a class, with the champion's where it has one."""
    named = [("candidate", curves), *([("champion", champion)] if champion else [])]
    series = [Series(name=who, points=points) for who, one in named if (points := _pr_points(name, one))]
    if not series or series[0].name != "candidate":
        return None
    unit = (0.0, 1.0)
    return line_chart(name, series, x_label="recall", y_label="precision", x_range=unit, y_range=unit, size=(240.0, 176.0))


def _pr_points(name: str, curves: Curves) -> tuple[tuple[float, float | None], ...]:
    precision = curves.precision[curves.classes.index(name)] if name in curves.classes else None
    return tuple(zip(curves.recall, precision, strict=True)) if precision else ()


def _lowest_first(figure: float | None) -> float:
    return 2.0 if figure is None else figure


def tally(findings: Iterable[Finding]) -> list[tuple[str, str, int]]:
    """Kind, action and how many of each, the most frequent first."""
    counts = Counter((finding.kind, finding.action) for finding in findings)
    return [(kind, action, number) for (kind, action), number in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]
