"""A bundle on its way into MLflow: the experiment and run it hangs on, what MLflow's pages show of it, and its files."""

import csv
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ruamel.yaml import YAML

from nightowl.errors import RegistryError
from nightowl.evaluation.metrics import Metrics
from nightowl.registry.record import BundleRecord
from nightowl.training.scalars import scalar_name

if TYPE_CHECKING:
    from mlflow import MlflowClient

BUNDLE = "bundle"
_LONGEST_VALUE = 500  # what every MLflow server takes
_AT_ONCE = 100


def upload(client: "MlflowClient", experiment: str, bundle: Path, record: BundleRecord) -> tuple[str, str]:
    """Put the files of `bundle` into a new run; returns the run's id and where the files now lie."""
    tags = {
        "nightowl.night": record.night_id,
        "nightowl.dataset_version": record.dataset_version,
        "mlflow.source.git.commit": record.code_commit,
    }
    run = client.create_run(experiment, run_name=record.night_id, tags=tags)
    _describe(client, run.info.run_id, bundle)
    client.log_artifacts(run.info.run_id, str(bundle), BUNDLE)
    client.set_terminated(run.info.run_id)
    return run.info.run_id, f"{run.info.artifact_uri}/{BUNDLE}"


def experiment_of(client: "MlflowClient", detector: str, artifacts: str | None) -> str:
    """The id of the detector's experiment, made when absent with its files below `artifacts` (None: as the server decides)."""
    found = client.get_experiment_by_name(detector)
    if found is None:
        where = f"{artifacts.rstrip('/')}/{detector}" if artifacts else None
        return str(client.create_experiment(detector, artifact_location=where))
    if found.lifecycle_stage != "active":
        raise RegistryError(
            f"the experiment {detector!r} was deleted in MLflow; restore it: "
            f"mlflow experiments restore --experiment-id {found.experiment_id}"
        )
    return str(found.experiment_id)


def _describe(client: "MlflowClient", run_id: str, bundle: Path) -> None:
    """Params and metrics for MLflow's pages; nightowl reads none of them back."""
    from mlflow.entities import Metric, Param

    now = int(datetime.now(UTC).timestamp() * 1000)
    params = YAML(typ="safe", pure=True).load((bundle / "params.yaml").read_text(encoding="utf-8"))
    rows = [Param(key, value[:_LONGEST_VALUE]) for key, value in _flat(params)]
    for start in range(0, len(rows), _AT_ONCE):
        client.log_batch(run_id, params=rows[start : start + _AT_ONCE])
    measured = Metrics.model_validate_json((bundle / "metrics.json").read_bytes())
    figures = [Metric(key, value, now, 0) for key, value in _figures(measured)]
    figures += [Metric(key, value, now, epoch) for key, value, epoch in _epochs(bundle / "results.csv")]
    figures += [Metric(f"machines/{key}", value, now, 0) for key, value in _machines(bundle / "machines.json")]
    for start in range(0, len(figures), _AT_ONCE):
        client.log_batch(run_id, metrics=figures[start : start + _AT_ONCE])


def _flat(values: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Leaves of nested mappings as `train.lr0`."""
    if isinstance(values, dict) and values:
        for key, value in values.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, str(values)


def _figures(measured: Metrics) -> Iterator[tuple[str, float]]:
    """What was measured, under names that MLflow allows; what could not be measured is absent."""
    named = {"mAP50": measured.map50, "mAP75": measured.map75, "mAP50-95": measured.map50_95}
    named |= {f"AP50 {_allowed(c.name)}": c.ap50 for c in measured.classes}
    for name, figure in named.items():
        if figure is not None:
            yield f"test/{name}", figure


def _epochs(history: Path) -> Iterator[tuple[str, float, int]]:
    """Name, value and epoch of every figure in training's table; a cell that is empty or no number is absent."""
    with history.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for column, text in row.items():
                if column not in ("epoch", "time") and _is_number(text):
                    yield _allowed(scalar_name(column), keep="/"), float(text), int(row["epoch"])


def _machines(account: Path) -> Iterator[tuple[str, float]]:
    """What became of the time and money of a night on rented machines; what is unknown is absent."""
    if account.exists():
        for name, figure in json.loads(account.read_bytes())["goodput"].items():
            if figure is not None:
                yield name, float(figure)


def _is_number(text: str | None) -> bool:
    try:
        return math.isfinite(float(text or ""))
    except ValueError:
        return False


def _allowed(name: str, keep: str = "") -> str:
    return "".join(character if character.isalnum() or character in f" _-.{keep}" else "_" for character in name)
