"""INT8 in the graph: weights and activations as QDQ pairs, which any runtime reads and a CPU can check.

By onnxruntime's static quantisation: weights symmetric, a scale a channel; activations by what most of their values on the
calibration images keep within. The detection head stays in float: quantised whole, it has exported models that find nothing.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.quantization import (
    CalibrationMethod,
    QuantFormat,
    QuantType,
    TensorsData,
    quantize_static,
    save_tensors_data,
)

from nightowl.export.graph import float_constants, float_tensors, modules_of, with_metadata_of
from nightowl.export.ranges import Range, ranges_of


def int8(
    model: onnx.ModelProto,
    inputs: Iterable[NDArray[np.float32]],
    float_modules: Sequence[str],
    percent: float,
    symmetric: bool = True,
) -> onnx.ModelProto:
    """`model` (FP32) with INT8 weights and activations, but for the modules named in `float_modules` (`/model.23`, say).

    Args:
        inputs: calibration images, each (3, S, S), as the network sees them.
        percent: of an activation's values, by magnitude, that are not clipped; 100: all.
        symmetric: activations with a zero point of 0, as TensorRT wants them.

    Raises:
        StageFailed: when there is no image to calibrate on, or an activation is NaN or infinite.
    """
    modules = modules_of(model.graph)
    kept = [node for node in model.graph.node if modules[node.name] in float_modules]
    in_float = {name for node in kept for name in node.output}
    names = [name for name in (*float_constants(model), *float_tensors(model)) if name not in in_float]
    ranges = ranges_of(model, inputs, names, percent)
    return with_metadata_of(model, _quantised(model, ranges, [node.name for node in kept], symmetric))


def _quantised(
    model: onnx.ModelProto, ranges: Mapping[str, Range], excluded: Sequence[str], symmetric: bool
) -> onnx.ModelProto:
    with TemporaryDirectory(prefix="nightowl-") as scratch:
        source, target, table = (Path(scratch) / name for name in ("fp32.onnx", "int8.onnx", "ranges.json"))
        onnx.save(model, source)
        as_given = {name: tuple(np.array(value, np.float32) for value in each) for name, each in ranges.items()}
        save_tensors_data(TensorsData(CalibrationMethod.MinMax, as_given), table)
        logging.getLogger().disabled = True  # it advises a preparation that needs another package and changes nothing here
        try:
            quantize_static(
                source,
                target,
                None,
                quant_format=QuantFormat.QDQ,
                per_channel=True,
                activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8,
                nodes_to_exclude=list(excluded),
                calibrate_method=CalibrationMethod.MinMax,
                calibration_cache_path=table,
                extra_options={"WeightSymmetric": True, "ActivationSymmetric": symmetric},
            )
        finally:
            logging.getLogger().disabled = False
        return onnx.load(target)
