"""INT8 in the graph: the head stays in float, the card travels, equal images give equal bytes."""

from collections.abc import Iterator
from functools import cache

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from nightowl.errors import StageFailed
from nightowl.export.graph import last_module, modules_of
from nightowl.export.quantise import int8
from tests.export.graphs import run, tiny_graph
from tests.tiny import SIZE


def images(num: int = 4) -> Iterator[NDArray[np.float32]]:
    return iter(np.random.default_rng(1).random((num, 3, SIZE, SIZE), np.float32))


@cache
def quantised() -> onnx.ModelProto:
    return int8(tiny_graph(), images(), [last_module(tiny_graph().graph)], 99.99)


def test_the_last_module_is_the_head() -> None:
    assert last_module(tiny_graph().graph) == "/model.23"


def test_every_convolution_but_the_heads_has_int8_weights() -> None:
    graph = quantised().graph
    made_by = {name: node.op_type for node in graph.node for name in node.output}
    modules = modules_of(graph)
    convolutions = [node for node in graph.node if node.op_type == "Conv"]
    in_int8 = {node.name for node in convolutions if made_by.get(node.input[1]) == "DequantizeLinear"}
    assert in_int8 == {node.name for node in convolutions if modules[node.name] != "/model.23"}
    assert len(in_int8) > 50


def test_it_says_about_what_the_trained_model_says() -> None:
    batch = np.stack(list(images()))
    ours, trained = (run(model, batch)[:, 4:].ravel() for model in (quantised(), tiny_graph()))
    assert 0.8 < np.corrcoef(ours, trained)[0, 1] < 1, "random weights on noise: the hardest there is"


def test_its_card_travels_and_its_zero_points_are_zero_as_tensorrt_wants() -> None:
    model = quantised()
    assert {p.key: p.value for p in model.metadata_props} == {p.key: p.value for p in tiny_graph().metadata_props}
    zeros = [w for w in model.graph.initializer if w.name.endswith("zero_point")]
    assert len(zeros) > 50
    assert not any(onnx.numpy_helper.to_array(zero).any() for zero in zeros)


def test_equal_images_give_equal_bytes() -> None:
    again = int8(tiny_graph(), images(), [last_module(tiny_graph().graph)], 99.99)
    assert again.SerializeToString(deterministic=True) == quantised().SerializeToString(deterministic=True)


def test_without_an_image_there_is_nothing_to_calibrate_on() -> None:
    with pytest.raises(StageFailed, match="found none in train"):
        int8(tiny_graph(), iter(()), [], 100)
