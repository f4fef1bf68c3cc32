"""Training's table of epochs (ultralytics' results.csv) as the charts of a report.

A cell that is empty or not finite is a gap; a column that is absent is a chart less, never a line at zero.
"""

import csv
import math
from pathlib import Path

from nightowl.errors import StageFailed
from nightowl.report.content import HistoryChart, Series

_LOSSES = {"box_loss": "Box loss", "cls_loss": "Class loss", "dfl_loss": "Distribution focal loss"}
_VAL = {"mAP50": "metrics/mAP50(B)", "mAP50-95": "metrics/mAP50-95(B)"}
_RATES = {"precision": "metrics/precision(B)", "recall": "metrics/recall(B)"}


def read_history(path: Path) -> tuple[HistoryChart, ...]:
    """One chart for each loss (train and val), then mAP, precision and recall on val, and the learning rate.

    Raises:
        StageFailed: when there is no column `epoch`, or no epoch.
    """
    with path.open(newline="", encoding="utf-8") as file:
        rows = [{key.strip(): value for key, value in row.items() if key} for row in csv.DictReader(file)]
    epochs = [_number(row.get("epoch")) for row in rows]
    if not rows or any(epoch is None for epoch in epochs):
        raise StageFailed(f"{path}: expected a table with a column `epoch` and a row an epoch; run the stage train again")
    columns = {key: _series(rows, key) for key in rows[0]}
    losses = sorted({key.partition("/")[2] for key in columns if key.endswith("_loss")}, key=_loss_order)
    charts = [_chart(_LOSSES.get(loss, loss), {"train": f"train/{loss}", "val": f"val/{loss}"}, columns) for loss in losses]
    charts.append(_chart("mAP on val", _VAL, columns, unit_range=True))
    charts.append(_chart("Precision and recall on val", _RATES, columns, unit_range=True))
    charts.append(_chart("Learning rate", {"first parameter group": "lr/pg0"}, columns))
    return tuple(chart for chart in charts if chart.series)


def _chart(
    title: str, named: dict[str, str], columns: dict[str, tuple[tuple[float, float | None], ...]], *, unit_range: bool = False
) -> HistoryChart:
    series = tuple(Series(name=name, points=columns[key]) for name, key in named.items() if key in columns)
    return HistoryChart(title=title, series=series, unit_range=unit_range)


def _series(rows: list[dict[str, str]], key: str) -> tuple[tuple[float, float | None], ...]:
    return tuple((float(row["epoch"]), _number(row.get(key))) for row in rows)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _loss_order(loss: str) -> tuple[int, str]:
    known = list(_LOSSES)
    return (known.index(loss) if loss in known else len(known), loss)
