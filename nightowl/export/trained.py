"""The trained model with all that its exports are held against, measured once for every precision."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from numpy.typing import NDArray

from nightowl.data.manifest import Manifest
from nightowl.evaluation.card import ModelCard
from nightowl.evaluation.detect import Detected, Source
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.evaluate import Subject
from nightowl.evaluation.measure import measure
from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.runners import Runner

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class Trained:
    """The trained model and what it says, measured once: its FP32 `graph`, raw or end-to-end; its metrics and detections on
    the test images of `dataset`, which lie in `folder`; inputs (N, 3, S, S) to compare tensors on; and detections made here
    on `sources`, to compare the whole path on."""

    module: "torch.nn.Module"
    runner: Runner
    card: ModelCard
    graph: onnx.ModelProto
    dataset: Manifest
    folder: Path
    metrics: Metrics
    detections: Detections
    inputs: NDArray[np.float32]
    sources: Sequence[Source]
    seen: Detections


def measure_again(trained: Trained, dataset: Manifest, detections: Detections) -> Metrics:
    """Figures of detections on the test images of `dataset`, or of a part of it, by the rules that measured the model."""
    subject = Subject("export", trained.card.model.weights_sha256, dataset.version(), "test", 0.0)
    overall = trained.card.operating.overall
    return measure(dataset, dataset.classes, Detected(detections, 0.0), subject, trained.card.limits, overall).metrics
