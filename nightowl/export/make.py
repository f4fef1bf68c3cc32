"""The trained model in a precision, as a file with its card."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nightowl.data.manifest import Image
from nightowl.evaluation.card import ModelCard
from nightowl.evaluation.detect import model_of, views_of
from nightowl.evaluation.measure import source_of
from nightowl.export.calibration import choose
from nightowl.export.graph import last_module
from nightowl.export.half import half
from nightowl.export.nms import with_nms
from nightowl.export.onnx import write_model
from nightowl.export.quantise import int8
from nightowl.export.trained import Trained
from nightowl.export_params import ExportParams, Precision


def calibration_images(trained: Trained, export: ExportParams) -> tuple[Image, ...]:
    return choose(trained.dataset.of("train"), export.calibration_images)


def make(precision: Precision, trained: Trained, export: ExportParams, path: Path) -> None:
    """Write the model in `precision` to `path`, with its card. Raises StageFailed when INT8 cannot be calibrated."""
    model = trained.graph
    if precision == "fp16":
        model = half(model)
    if precision == "int8":
        model = int8(model, calibration_inputs(trained, export), [last_module(model.graph)], export.calibration_percent)
    if _thins(trained, export):
        model = with_nms(model, trained.card.limits)
    write_model(model, card_of(precision, trained, export), path)


def card_of(precision: Precision, trained: Trained, export: ExportParams) -> ModelCard:
    """The card of the file that ships in `precision`."""
    changed: dict[str, object] = {"precision": precision}
    if _thins(trained, export):
        changed |= {"head": "end2end", "nms_in_graph": True}
    return trained.card.model_copy(update={"model": trained.card.model.model_copy(update=changed)})


def calibration_inputs(trained: Trained, export: ExportParams) -> Iterator[NDArray[np.float32]]:
    """What the network sees of each calibration image: of a tiled one a single tile, which one by its content."""
    model = model_of(trained.card.model, trained.runner)
    for image in calibration_images(trained, export):
        views = views_of(source_of(image, trained.folder).load(), model)
        yield views[int(image.sha256, 16) % len(views)][0]


def _thins(trained: Trained, export: ExportParams) -> bool:
    return export.nms_in_graph and trained.card.model.head == "raw"
