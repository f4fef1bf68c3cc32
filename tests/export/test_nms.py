"""NMS inside the graph gives what decode gives: any batch, ties, nothing found, more found than may stay."""

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from nightowl.evaluation.postprocess import decode
from nightowl.export.nms import before_nms, with_nms
from nightowl.params import EvaluateParams
from tests.export.graphs import run


def identity(num_classes: int, anchors: int) -> onnx.ModelProto:
    """A network whose output is its input, (B, 4 + C, A)."""
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 4 + num_classes, anchors]) for n in ("images", "output0")
    ]
    node = helper.make_node("Identity", ["images"], ["output0"], name="/model.0/Identity")
    inner = helper.make_graph([node], "identity", ends[:1], ends[1:])
    return helper.make_model(inner, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def outputs(seed: int, num: int = 3, num_classes: int = 3, anchors: int = 200) -> NDArray[np.float32]:
    """Crowded boxes, some without area, and scores on a coarse grid, so that many are equal."""
    random = np.random.default_rng(seed)
    centre, sides = random.uniform(0, 40, (num, 2, anchors)), random.integers(0, 5, (num, 2, anchors)) * 4
    return np.concatenate([centre, sides, random.integers(0, 40, (num, num_classes, anchors)) / 40], axis=1).astype(np.float32)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (EvaluateParams(), "as measured"),
        (EvaluateParams(nms_iou=0.6, confidence_floor=0.25), "0.6 lies above its nearest float32"),
        (EvaluateParams(max_detections=7), "more found than may stay"),
        (EvaluateParams(confidence_floor=0.99), "nothing found"),
        (EvaluateParams(max_detections=30_000), "fewer candidates than places"),
    ],
)
def test_it_gives_what_decode_gives(limits: EvaluateParams, why: str) -> None:
    model = with_nms(identity(3, 200), limits)
    for seed in range(5):
        raw = outputs(seed)
        said = run(model, raw)
        assert said.shape == (3, min(limits.max_detections, 600), 6)
        for rows, one in zip(said, raw, strict=True):
            wanted = decode(
                one, "raw", confidence=limits.confidence_floor, iou=limits.nms_iou, max_detections=limits.max_detections
            )
            found = decode(
                rows, "end2end", confidence=limits.confidence_floor, iou=limits.nms_iou, max_detections=limits.max_detections
            )
            for ours, theirs in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(ours, theirs, err_msg=why)
            assert not rows[len(wanted.score) :].any(), "what was not found is zeros"


def test_what_the_network_said_before_can_still_be_asked() -> None:
    raw = outputs(0)
    np.testing.assert_array_equal(run(before_nms(with_nms(identity(3, 200), EvaluateParams())), raw), raw)
