"""INT8 in the graph: weights and activations as QDQ pairs, which any runtime reads and a CPU can check.

By onnxruntime's static quantisation: weights symmetric, a scale a channel; activations by the least and greatest value that the
calibration images gave. The detection head stays in float: quantised whole, it has exported models that find nothing at all.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static

from nightowl.errors import StageFailed
from nightowl.export.graph import modules_of, with_metadata_of


class _Images(CalibrationDataReader):  # type: ignore[misc]
    """Inputs (1, 3, S, S), one at a time: their number never fills the memory."""

    def __init__(self, name: str, inputs: Iterator[NDArray[np.float32]]) -> None:
        self._name, self._inputs = name, inputs

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        tensor = next(self._inputs, None)
        return None if tensor is None else {self._name: tensor[None]}


def int8(
    model: onnx.ModelProto, inputs: Iterator[NDArray[np.float32]], float_modules: Sequence[str], symmetric: bool = True
) -> onnx.ModelProto:
    """`model` (FP32) with INT8 weights and activations, but for the modules named in `float_modules` (`/model.23`, say).

    Args:
        inputs: calibration images, each (3, S, S), as the network sees them.
        symmetric: activations with a zero point of 0, as TensorRT wants them.

    Raises:
        StageFailed: when there is no image to calibrate on.
    """
    modules = modules_of(model.graph)
    kept = [node.name for node in model.graph.node if modules[node.name] in float_modules]
    first = next(inputs, None)
    if first is None:
        raise StageFailed("export: expected images to calibrate INT8 on, found none in train")
    with TemporaryDirectory(prefix="nightowl-") as scratch:
        source, target = Path(scratch) / "fp32.onnx", Path(scratch) / "int8.onnx"
        onnx.save(model, source)
        logging.getLogger().disabled = True  # it advises a preparation that needs another package and changes nothing here
        try:
            quantize_static(
                source,
                target,
                _Images(model.graph.input[0].name, _again(first, inputs)),
                quant_format=QuantFormat.QDQ,
                per_channel=True,
                activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8,
                nodes_to_exclude=kept,
                calibrate_method=CalibrationMethod.MinMax,
                extra_options={"WeightSymmetric": True, "ActivationSymmetric": symmetric},
            )
        finally:
            logging.getLogger().disabled = False
        return with_metadata_of(model, onnx.load(target))


def _again(first: NDArray[np.float32], rest: Iterator[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
    yield first
    yield from rest
