"""Thinning of overlapping boxes inside the graph: a raw head's output becomes that of an end-to-end one.

With the results of evaluation/postprocess.decode, up to its 30,000 candidates: boxes of a class that overlap by more than the
limit give way to the better one, then the best of all classes are taken. Made of plain ONNX operators, for any batch.

Shapes: B images, C classes, A anchors, K rows.
"""

from collections.abc import Iterator

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from nightowl.export.graph import GraphRunner, with_metadata_of
from nightowl.params import EvaluateParams

RAW = "raw_output"  # what a raw head said, inside a graph that thins


def with_nms(model: onnx.ModelProto, limits: EvaluateParams) -> onnx.ModelProto:
    """`model`, whose output is (B, 4 + C, A), made to say (B, K, 6): boxes xyxy, score, class, best first, then rows of zeros.

    K is `limits.max_detections`, or C * A where that is less.
    """
    ours = onnx.ModelProto()
    ours.CopyFrom(model)
    output = ours.graph.output[0]
    sides = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim[1:]]
    _, rows, anchors = GraphRunner(model)(np.zeros((1, *sides), np.float32)).shape
    num = min(limits.max_detections, (rows - 4) * anchors)
    _rename(ours.graph, output.name, RAW)
    ours.graph.node.extend(_nodes(output.name, rows - 4, num))
    ours.graph.initializer.extend(_constants(rows - 4, num, limits))
    del ours.graph.output[:]
    ours.graph.output.append(helper.make_tensor_value_info(output.name, TensorProto.FLOAT, ["batch", num, 6]))
    onnx.checker.check_model(ours, full_check=True)
    return with_metadata_of(model, ours)


def before_nms(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model made by `with_nms`, as it was before: its output is (B, 4 + C, A) again."""
    ours = onnx.ModelProto()
    ours.CopyFrom(model)
    output = ours.graph.output[0].name
    _rename(ours.graph, output, f"nms/{output}")
    _rename(ours.graph, RAW, output)
    for parts in (ours.graph.node, ours.graph.initializer):
        kept = [part for part in parts if not part.name.removeprefix("/").startswith("nms/")]
        del parts[:]
        parts.extend(kept)
    ours.graph.output[0].type.tensor_type.ClearField("shape")
    return ours


def _rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Of a tensor, wherever nodes make or use it."""
    for node in graph.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                names[place] = new if name == old else name


def _nodes(output: str, num_classes: int, num: int) -> Iterator[onnx.NodeProto]:
    def named(names: str) -> list[str]:
        return [name if name in (RAW, output) else f"nms/{name}" for name in names.split()]

    def node(kind: str, inputs: str, outputs: str, **attributes: int | list[int]) -> onnx.NodeProto:
        return helper.make_node(kind, named(inputs), named(outputs), name=f"/nms/{outputs.split()[0]}", **attributes)

    yield node("Split", f"{RAW} parts", "centre sides scores", axis=1)
    yield node("Div", "sides two", "half")
    yield node("Sub", "centre half", "low")
    yield node("Add", "centre half", "high")
    yield node("Concat", "low high", "edges", axis=1)
    yield node("Transpose", "edges", "boxes", perm=[0, 2, 1])
    yield node("Transpose", "scores", "by_anchor", perm=[0, 2, 1])
    # Corners may be given in any order: xyxy serves as yxyx. No class can fill more than all K rows.
    yield node("NonMaxSuppression", "boxes scores most iou confidence", "kept")
    yield node("Gather", "kept image_box_class", "places", axis=1)
    yield node("GatherND", "by_anchor places", "kept_scores")
    yield node("Shape", "by_anchor", "shape")
    yield node("ConstantOfShape", "shape", "nothing")
    yield node("ScatterND", "nothing places kept_scores", "thinned")
    yield node("Flatten", "thinned", "flat", axis=1)
    # Equal scores: the lower index first, so anchor before class, as decode has it.
    yield node("TopK", "flat num", "best index", axis=1)
    yield node("Div", "index num_classes", "anchor")
    yield node("Mod", "index num_classes", "class_id")
    yield node("Cast", "class_id", "class", to=TensorProto.FLOAT)
    yield node("Unsqueeze", "anchor last", "anchor_row")
    yield node("GatherND", "boxes anchor_row", "best_boxes", batch_dims=1)
    yield node("Unsqueeze", "best last", "best_column")
    yield node("Unsqueeze", "class last", "class_column")
    yield node("Concat", "best_boxes best_column class_column", "rows", axis=2)
    yield node("Greater", "best_column zero", "is_found")
    yield node("Where", "is_found rows zero", output)


def _constants(num_classes: int, num: int, limits: EvaluateParams) -> Iterator[onnx.TensorProto]:
    values: dict[str, NDArray[np.generic]] = {
        "parts": np.array([2, 2, num_classes], np.int64),
        "two": np.array(2, np.float32),
        "most": np.array([num], np.int64),
        "iou": np.array([_below(limits.nms_iou)], np.float32),
        "confidence": np.array([limits.confidence_floor], np.float32),
        "image_box_class": np.array([0, 2, 1], np.int64),
        "num": np.array([num], np.int64),
        "num_classes": np.array(num_classes, np.int64),
        "last": np.array([2], np.int64),
        "zero": np.array(0, np.float32),
    }
    yield from (numpy_helper.from_array(value, f"nms/{name}") for name, value in values.items())


def _below(limit: float) -> np.float32:
    """The largest float32 up to `limit`: an IoU in float32 that is more than the one is more than the other."""
    nearest = np.float32(limit)
    return nearest if float(nearest) <= limit else np.nextafter(nearest, np.float32(0))
