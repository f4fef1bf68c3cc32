from pathlib import Path

import pytest

from nightowl.errors import RegistryError
from nightowl.training.scalars import Behind
from tests.bundles import new_registry


def test_a_training_that_goes_on_writes_to_the_run_it_began(tmp_path: Path) -> None:
    registry = new_registry(tmp_path / "home")
    for epochs in ((1, 2), (3,)):
        sink = Behind(lambda: registry.scalars_of("demo", "k" * 64))
        for epoch in epochs:
            sink.write(epoch, {"val/mAP50": epoch / 10, "gpu/busy_percent": 90.0})
        sink.close()
    other = registry.scalars_of("demo", "o" * 64)
    other.write(1, {"val/mAP50": 0.9})
    client = registry._client
    experiment = client.get_experiment_by_name("demo")
    runs = client.search_runs([experiment.experiment_id], "tags.`nightowl.training` = '" + "k" * 64 + "'")
    assert [(run.info.run_name, run.info.status) for run in runs] == [("training kkkkkkkk", "FINISHED")]
    history = client.get_metric_history(runs[0].info.run_id, "val/mAP50")
    assert [(metric.step, metric.value) for metric in history] == [(1, 0.1), (2, 0.2), (3, 0.3)]
    assert other.run_id != runs[0].info.run_id
    assert client.get_run(other.run_id).info.status == "RUNNING"


def test_a_run_that_was_deleted_in_mlflow_is_one_line(tmp_path: Path) -> None:
    registry = new_registry(tmp_path / "home")
    sink = registry.scalars_of("demo", "k" * 64)
    registry._client.delete_run(sink.run_id)
    with pytest.raises(RegistryError, match=r"^[^\n]+$"):
        sink.write(1, {"val/mAP50": 0.5})
