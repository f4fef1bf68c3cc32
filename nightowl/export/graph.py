"""An ONNX graph as the modules of the network that it came from, and small changes to it."""

import re
from collections.abc import Iterable

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

# The tracing exporter names a node by the module it came from: `/model.23/cv2.0/Conv`.
_MODULE = re.compile(r"/model\.\d+")


def modules_of(graph: onnx.GraphProto) -> dict[str, str]:
    """The module that each node belongs to, by the node's name: `/model.23`, or an empty text for none."""
    return {node.name: match[0] if (match := _MODULE.match(node.name)) else "" for node in graph.node}


def last_module(graph: onnx.GraphProto) -> str:
    """The module that makes the output: the detection head."""
    named = [module for module in modules_of(graph).values() if module]
    return max(named, key=module_number)


def module_number(name: str) -> int:
    """23 for `/model.23`."""
    return int(name.rpartition(".")[2])


def float_tensors(model: onnx.ModelProto) -> list[str]:
    """The outputs of all nodes that are float32, in the order in which they are computed."""
    shaped = onnx.shape_inference.infer_shapes(model)
    known = {value.name: value.type.tensor_type.elem_type for value in (*shaped.graph.value_info, *shaped.graph.output)}
    names = [name for node in model.graph.node if node.op_type != "Constant" for name in node.output]
    return [name for name in names if known.get(name) == onnx.TensorProto.FLOAT]


def float_constants(model: onnx.ModelProto) -> list[str]:
    """The outputs of the constant nodes that are float32."""
    constants = [(node.output[0], node.attribute[0].t) for node in model.graph.node if node.op_type == "Constant"]
    return [name for name, value in constants if value.data_type == onnx.TensorProto.FLOAT]


def with_outputs(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """A copy that also says the tensors `names`, all float32."""
    ours = onnx.ModelProto()
    ours.CopyFrom(model)
    present = {value.name for value in ours.graph.output}
    new = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names if name not in present]
    ours.graph.output.extend(new)
    return ours


def with_metadata_of(source: onnx.ModelProto, model: onnx.ModelProto) -> onnx.ModelProto:
    """`model`, made to hold the metadata and the format version of `source` and no more."""
    del model.metadata_props[:]
    model.metadata_props.extend(source.metadata_props)
    model.ir_version = source.ir_version
    model.producer_name, model.producer_version = source.producer_name, source.producer_version
    return model


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """A session that computes the graph as it stands: an optimiser may take a rounding for superfluous."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class GraphRunner:
    """A graph in memory as a runner; of several outputs the first counts."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._session, self._input = session(model), model.graph.input[0].name

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(self._session.run(None, {self._input: batch})[0], np.float32)
