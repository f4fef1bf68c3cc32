"""Draws the content of a report as one page that needs nothing else: no script, no font, no request.

Everything passes through one template environment that escapes always, and the page forbids itself to load or run anything, so
that a hostile name in a dataset stays a name.
"""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from nightowl import __version__
from nightowl.files import write_atomic
from nightowl.report.chart import Chart, line_chart
from nightowl.report.content import HistoryChart, ReportContent
from nightowl.report.outcome import advice, headline
from nightowl.report.tables import (
    MAX_MATRIX_CLASSES,
    MAX_PANELS,
    class_rows,
    confusion_cells,
    overall_rows,
    part_rows,
    pr_panels,
    same_classes,
    tally,
    worst_confusions,
)
from nightowl.stages.workspace import STAGES

_TEMPLATES = Path(__file__).parent / "templates"
MAX_CHECKS = 30
_JUDGED = ("checks", "operating", "metrics", "changes")
_WHOLE = (*_JUDGED, "training", "curves", "images", "labels", "data", "audit", "export", "stages", "machines", "lineage")
MINUS, NONE = "\N{MINUS SIGN}", "\N{EM DASH}"


def write_report(path: Path, content: ReportContent) -> None:
    """Publish the page at `path` in one rename."""
    write_atomic(path, render(content).encode("utf-8", "backslashreplace"))


def render(content: ReportContent) -> str:
    """The page as HTML text."""
    candidate, curves = content.candidate, content.curves
    rows = class_rows(candidate, content.champion) if candidate else ()
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            content=content,
            facts=content.facts,
            headline=headline(content),
            advice=advice(content),
            stages=STAGES,
            parts=parts(content),
            overall=overall_rows(candidate, content.champion) if candidate else (),
            comparable=bool(candidate and same_classes(candidate, content.champion)),
            class_rows=rows,
            part_rows=part_rows(candidate, content.champion) if candidate else (),
            history=[_history_chart(chart, content) for chart in content.history or ()],
            panels=pr_panels(rows, curves, content.champion_curves) if curves else (),
            max_panels=MAX_PANELS,
            max_checks=MAX_CHECKS,
            matrix=confusion_cells(curves) if curves and len(curves.classes) <= MAX_MATRIX_CLASSES else (),
            confusions=worst_confusions(curves) if curves and len(curves.classes) > MAX_MATRIX_CLASSES else (),
            faults=tally(content.findings or ()),
            nightowl_version=__version__,
        )
    )


def parts(content: ReportContent) -> tuple[str, ...]:
    """The parts of the page, in order. A night that ended early has a short one; its table of stages says what is lacking."""
    if content.facts.ending == "nothing_new":
        return ("data", "lineage")
    if content.facts.ending == "failed":
        there = {
            "training": content.history,
            "metrics": content.candidate,
            "changes": content.differences,
            "curves": content.curves,
            "images": content.gallery,
            "checks": content.verdict,
        }
        audit = ("audit",) if content.audit else ()
        rented = ("machines",) if content.facts.rented else ()
        return ("stages", *rented, *(part for part, found in there.items() if found is not None), "data", *audit, "lineage")
    return tuple(part for part in _WHOLE if part != "machines" or content.facts.rented)


def _history_chart(chart: HistoryChart, content: ReportContent) -> Chart:
    on_val = any("val" in text for text in (chart.title, *(series.name for series in chart.series)))
    best = content.model.best_epoch if content.model and on_val else None
    return line_chart(
        chart.title,
        chart.series,
        x_label="epoch",
        y_range=(0.0, 1.0) if chart.unit_range else None,
        whole_x=True,
        mark=None if best is None else (float(best), f"best: {best}"),
    )


@cache
def environment() -> Environment:
    """The one template environment, which escapes always."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        figure=figure,
        change=change,
        count=count,
        duration=duration,
        moment=moment,
        size=size,
        plain=plain,
        words=words,
        hours=hours,
        usd=usd,
    )
    return environment


def figure(value: float | None, digits: int = 3) -> str:
    """A figure with fixed digits; a dash where it was not measured."""
    return NONE if value is None else f"{value:.{digits}f}"


def change(value: float | None, digits: int = 3) -> str:
    """A difference with its sign; a dash where there is none."""
    if value is None:
        return NONE
    rounded = f"{abs(value):.{digits}f}"
    sign = "" if float(rounded) == 0 else "+" if value > 0 else MINUS
    return sign + rounded


def plain(value: float | None, beside: float | None = None) -> str:
    """A figure of any unit, as short as it is honest: 87, 0.750, 4.2e-06; whole only where the one `beside` it is, too."""
    if value is None:
        return NONE
    if value.is_integer() and (beside is None or beside.is_integer()):
        text = str(int(value))
    else:
        text = f"{value:.3f}" if value == 0 or 0.001 <= abs(value) < 1000 else f"{value:.2g}"
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def count(value: int) -> str:
    """A count with thin spaces between thousands."""
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def duration(seconds: float) -> str:
    """A time span in the two largest of its units: 0.4 s, 42 s, 7 min 05 s, 3 h 12 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def hours(value: float) -> str:
    """Machine hours as a time span."""
    return duration(value * 3600)


def usd(value: float | None) -> str:
    """Money, to the cent; unknown is no amount."""
    return "unknown" if value is None else f"{value:.2f} USD"


def moment(value: datetime) -> str:
    """A point in time in UTC, to the minute; one without a time zone is said as it is."""
    if value.tzinfo is None:
        return f"{value:%Y-%m-%d %H:%M}"
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def size(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:.1f} MB"


def words(name: str) -> str:
    """An identifier as words: `same_content` is said `same content`."""
    return name.replace("_", " ")
