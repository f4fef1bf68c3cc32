"""Whether FP16 can hold a model: what no CPU shows by running the file, as it computes FP16 in FP32.

By the greatest value that each tensor takes on real images, and by mAP on test with every operator's result rounded.
"""

from dataclasses import replace

import numpy as np
import onnx
from numpy.typing import NDArray

from nightowl.data.manifest import Manifest
from nightowl.evaluation.metrics import Metrics
from nightowl.export.calibration import choose
from nightowl.export.half import MAX_FP16, beyond_fp16, extremes
from nightowl.export.parity import ParityCheck, check

MAX_ROUNDED_IMAGES = 200  # the rounded graph is several times slower than the file


def range_check(model: onnx.ModelProto, images: NDArray[np.float32]) -> ParityCheck:
    """The greatest value of any tensor of the FP32 graph over images (N, 3, S, S), against the end of FP16."""
    found = extremes(model, images)
    beyond = beyond_fp16(found)
    fault = f"first beyond it: {beyond[0].tensor}" if beyond else None
    return check("largest value of any tensor", float(np.max([each.value for each in found])), MAX_FP16, fault)


def rounded_set(dataset: Manifest) -> Manifest:
    """The test images that the rounded graph is measured on: all, or a choice in which every class has its share."""
    return replace(dataset, images=choose(dataset.of("test"), MAX_ROUNDED_IMAGES))


def rounded_check(trained: Metrics, rounded: Metrics, limit: float) -> ParityCheck:
    """mAP50-95 with every result rounded, against the trained model's on the same images."""
    known = trained.map50_95 is not None and rounded.map50_95 is not None
    gap = abs(trained.map50_95 - rounded.map50_95) if known else None  # type: ignore[operator]
    return check("mAP50-95 gap with every operator rounded to FP16", gap, limit, f"on {rounded.num_images} images")
