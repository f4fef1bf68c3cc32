"""FP16 in the graph, and whether FP16 can hold it at all.

A CPU computes an FP16 graph in FP32, so that running it there proves nothing. Two things do: the greatest value that each
tensor of the FP32 graph takes on real images, against the end of the format; and the FP32 graph with every operator's result
rounded to FP16 and back, which a CPU does compute.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.transformers.onnx_model import OnnxModel

from nightowl.export.graph import float_tensors, session, with_metadata_of, with_outputs

MAX_FP16 = float(np.finfo(np.float16).max)  # 65,504
_RAW = "__fp32"


class Extreme(NamedTuple):
    """The largest absolute value that a tensor took."""

    tensor: str
    value: float


def half(model: onnx.ModelProto) -> onnx.ModelProto:
    """`model` (FP32) in FP16, weights and operators; its input and output stay float32."""
    ours = onnx.ModelProto()
    ours.CopyFrom(model)
    converted = convert_float_to_float16(ours, keep_io_types=True)
    OnnxModel.graph_topological_sort(converted.graph, is_deterministic=True)  # it leaves casts after what needs them
    return with_metadata_of(model, converted)


def extremes(model: onnx.ModelProto, inputs: Iterable[NDArray[np.float32]]) -> list[Extreme]:
    """The extreme of each float tensor of `model` over `inputs`, each (3, S, S), in order of computation.

    A tensor that was infinite or NaN once has that value.
    """
    names = float_tensors(model)
    running = session(with_outputs(model, names))
    found = np.zeros(len(names))
    for tensor in inputs:
        outputs = running.run(names, {model.graph.input[0].name: tensor[None]})
        found = np.maximum(found, [np.abs(output).max(initial=0) for output in outputs])
    return [Extreme(name, float(value)) for name, value in zip(names, found, strict=True)]


def beyond_fp16(found: Iterable[Extreme]) -> list[Extreme]:
    """Those that FP16 cannot hold, in order of computation."""
    return [extreme for extreme in found if not extreme.value <= MAX_FP16]


def rounding(model: onnx.ModelProto) -> onnx.ModelProto:
    """`model` (FP32) with its input, weights and every operator's float result rounded to FP16, all computed in float32."""
    ours = onnx.ModelProto()
    ours.CopyFrom(model)
    for weight in ours.graph.initializer:
        _round_tensor(weight)
    for node in ours.graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                _round_tensor(attribute.t)
    _round_results(ours.graph, set(float_tensors(model)))
    return ours


def _round_results(graph: onnx.GraphProto, floats: set[str]) -> None:
    """After each node with a float result, a cast down and up; consumers see the rounded one."""
    outputs: Mapping[str, str] = {name: name + _RAW for name in floats}
    nodes = list(graph.node)
    del graph.node[:]
    source = graph.input[0].name
    rounded_input = f"{source}{_RAW}"
    graph.node.extend(_casts(source, rounded_input))
    for node in nodes:
        for place, name in enumerate(node.input):
            if name == source:
                node.input[place] = rounded_input
        results = list(node.output)
        for place, name in enumerate(results):
            node.output[place] = outputs.get(name, name)
        graph.node.append(node)
        for name in results:
            if name in outputs:
                graph.node.extend(_casts(outputs[name], name))


def _casts(source: str, target: str) -> list[onnx.NodeProto]:
    between = f"{target}__fp16"
    return [
        onnx.helper.make_node("Cast", [source], [between], name=f"{target}__down", to=onnx.TensorProto.FLOAT16),
        onnx.helper.make_node("Cast", [between], [target], name=f"{target}__up", to=onnx.TensorProto.FLOAT),
    ]


def _round_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == onnx.TensorProto.FLOAT:
        with np.errstate(over="ignore"):  # what FP16 cannot hold becomes infinite, as it would there
            values = onnx.numpy_helper.to_array(tensor).astype(np.float16).astype(np.float32)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
