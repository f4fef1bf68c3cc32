"""A training's figures in MLflow while it runs: one run a training, found again by whoever goes on with it."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from nightowl.registry.connect import explained

if TYPE_CHECKING:
    from mlflow import MlflowClient

TRAINING_TAG = "nightowl.training"


class MlflowSink:
    """A sink of scalars. The run is in the detector's experiment, tagged with the training's key.

    Raises:
        RegistryError: by every method, when MLflow cannot do its part.
    """

    def __init__(self, client: "MlflowClient", uri: str, experiment: str, key: str) -> None:
        self._client, self._uri = client, uri
        with explained(uri):
            found = client.search_runs([experiment], f"tags.`{TRAINING_TAG}` = '{key}'", max_results=1)
            run = found[0] if found else client.create_run(experiment, tags={TRAINING_TAG: key}, run_name=f"training {key[:8]}")
            self.run_id: str = run.info.run_id
            client.update_run(self.run_id, status="RUNNING")

    def write(self, epoch: int, scalars: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        with explained(self._uri):
            self._client.log_batch(self.run_id, metrics=[Metric(name, value, now, epoch) for name, value in scalars.items()])

    def close(self) -> None:
        with explained(self._uri):
            self._client.set_terminated(self.run_id)
