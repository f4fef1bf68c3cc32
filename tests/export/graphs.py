"""Small ONNX graphs, named as the exporter names them, and the exported tiny detector."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from nightowl.evaluation.card import to_metadata
from nightowl.export.onnx import export_onnx
from tests.tiny import CLASSES, SIZE, tiny_card, tiny_module


@cache
def tiny_graph() -> onnx.ModelProto:
    """The tiny detector in FP32; nobody may change it."""
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.onnx"
        export_onnx(tiny_module(), tiny_card(), 17, path)
        return onnx.load(path)


def scaled_graph(up: float, down: float) -> onnx.ModelProto:
    """images -> times `up` in module 0 -> times `down` in module 1, (N, 3, S, S) in and out."""
    nodes = [
        helper.make_node("Mul", ["images", "up"], ["large"], name="/model.0/Mul"),
        helper.make_node("Mul", ["large", "down"], ["output0"], name="/model.1/Mul"),
    ]
    shape = ["batch", 3, 8, 8]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("images", "output0")]
    weights = [numpy_helper.from_array(np.float32([value]), name) for name, value in (("up", up), ("down", down))]
    graph = helper.make_graph(nodes, "scaled", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    model.metadata_props.add(key="kept", value="yes")
    return model


def pooled_graph() -> onnx.ModelProto:
    """A raw head of nine anchors over means of the image, with the tiny detector's card: it says little, and quickly."""
    num, side = 4 + len(CLASSES), SIZE // 3
    nodes = [
        helper.make_node("AveragePool", ["images"], ["means"], kernel_shape=[side, side], strides=[side, side]),
        helper.make_node("Concat", ["means", "means", "means"], ["many"], axis=1),
        helper.make_node("Slice", ["many", "first", "last", "axis"], ["some"]),
        helper.make_node("Reshape", ["some", "shape"], ["output0"]),
    ]
    numbers = {"first": [0], "last": [num], "axis": [1], "shape": [0, num, 9]}
    ends = [
        helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, SIZE, SIZE]),
        helper.make_tensor_value_info("output0", TensorProto.FLOAT, ["batch", num, 9]),
    ]
    weights = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in numbers.items()]
    graph = helper.make_graph(nodes, "pooled", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    helper.set_model_props(model, to_metadata(tiny_card()))
    return model


def run(model: onnx.ModelProto, batch: NDArray[np.float32]) -> NDArray[np.float32]:
    """What onnxruntime's CPU provider says, as it ships."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"images": batch})[0], np.float32)
