"""The geometry of a line chart, in the units of its SVG: axes, ticks, lines, strips to hover over.

Pure arithmetic: the template draws it, so that every name passes through the one place that escapes. A missing figure is a
gap in the line.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nightowl.report.content import Series

LEFT, RIGHT, TOP, BOTTOM = 42.0, 10.0, 10.0, 34.0
MAX_STRIPS = 120
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

Range = tuple[float, float]


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Line:
    """A curve: `path` is SVG path data; `dots` are points with no neighbour to be joined to, and the last one."""

    name: str
    path: str
    dots: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Strip:
    """A vertical strip that says the figures at its x."""

    left: float
    width: float
    title: str


@dataclass(frozen=True)
class Chart:
    title: str
    x_label: str
    y_label: str
    width: float
    height: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    strips: tuple[Strip, ...]
    mark: Tick | None

    left, right, top, bottom = LEFT, RIGHT, TOP, BOTTOM


def line_chart(
    title: str,
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str = "",
    x_range: Range | None = None,
    y_range: Range | None = None,
    whole_x: bool = False,
    mark: tuple[float, str] | None = None,
    size: tuple[float, float] = (340.0, 200.0),
) -> Chart:
    """A chart of `series`; a range that is not given covers the figures. `mark` is an x to point out, and its name."""
    width, height = size
    points = [point for one in series for point in one.points]
    x_values = nice_ticks(*(x_range or _span(x for x, _ in points)), whole=whole_x)
    y_values = nice_ticks(*(y_range or _span(y for _, y in points)))
    x_low, x_high = x_range or _span(x for x, _ in points)
    y_low, y_high = y_range or (y_values[0], y_values[-1])

    def to_x(value: float) -> float:
        return LEFT + (value - x_low) / (x_high - x_low) * (width - LEFT - RIGHT)

    def to_y(value: float) -> float:
        return height - BOTTOM - (value - y_low) / (y_high - y_low) * (height - TOP - BOTTOM)

    return Chart(
        title,
        x_label,
        y_label,
        width,
        height,
        tuple(Tick(to_x(value), text) for value, text in _labelled(x_values) if x_low <= value <= x_high),
        tuple(Tick(to_y(value), text) for value, text in _labelled(y_values) if y_low <= value <= y_high),
        tuple(_line(one.name, [(to_x(x), None if y is None else to_y(y)) for x, y in one.points]) for one in series),
        tuple(_strips(series, x_label, [to_x(x) for x, _ in series[0].points], width - RIGHT)) if series else (),
        Tick(to_x(mark[0]), mark[1]) if mark and x_low <= mark[0] <= x_high else None,
    )


def nice_ticks(low: float, high: float, about: int = 4, *, whole: bool = False) -> list[float]:
    """Round values a constant step apart that enclose [low, high]; low < high."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in _STEPS if power * factor >= raw * 0.999)
    if whole:
        step = max(1.0, math.ceil(step))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def _span(values: Iterable[float | None]) -> Range:
    """The least and greatest figure; where they are one, from zero to twice it; 0 to 1 where there is none."""
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    if low == high:
        return (min(2 * low, 0.0), max(2 * low, 0.0)) if low else (0.0, 1.0)
    return low, high


def _labelled(values: Sequence[float]) -> list[tuple[float, str]]:
    step = values[1] - values[0] if len(values) > 1 else 1.0
    decimals = next((d for d in range(6) if abs(round(step, d) - step) < step * 1e-6), None)
    short = decimals is not None and max(map(abs, values)) < 1e5
    return [(value, f"{value:.{decimals}f}" if short else f"{value:.1e}") for value in values]


def _line(name: str, points: Sequence[tuple[float, float | None]]) -> Line:
    path, dots, run = [], [], list[tuple[float, float]]()
    for x, y in [*points, (0.0, None)]:
        if y is not None:
            run.append((x, y))
        elif run:
            path.append("M" + "L".join(f"{a:.1f},{b:.1f}" for a, b in run))
            dots += run if len(run) == 1 else []
            run = []
    return Line(name, "".join(path), tuple(dots))


def _strips(series: Sequence[Series], x_label: str, at: Sequence[float], right: float) -> Iterable[Strip]:
    """One strip a point of the first series, thinned to MAX_STRIPS, each reaching halfway to its neighbours."""
    keep = range(0, len(at), max(1, math.ceil(len(at) / MAX_STRIPS)))
    tables = [dict(one.points) for one in series]
    for order, index in enumerate(keep):
        before = at[keep[order - 1]] if order else 2 * LEFT - at[index]
        after = at[keep[order + 1]] if order + 1 < len(keep) else 2 * right - at[index]
        left, end = max(LEFT, (before + at[index]) / 2), min(right, (after + at[index]) / 2)
        x = series[0].points[index][0]
        said = [f"{one.name} {_figure(table.get(x))}" for one, table in zip(series, tables, strict=True)]
        yield Strip(left, max(end - left, 0.5), "\n".join([f"{x_label} {x:g}", *said]))


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
