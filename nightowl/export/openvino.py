"""The shipped ONNX in OpenVINO's form: the same weights, precision and card; and what that form says inside.

OpenVINO reads the ONNX itself; its converter with telemetry is not used. Needs the optional part `openvino`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nightowl.errors import StageFailed
from nightowl.evaluation.openvino import compiled, open_core
from nightowl.export.inside import Inside, Tensors, as_seen
from nightowl.export.nms import RAW
from nightowl.export.onnx import OUTPUT


def convert(onnx: Path, xml: Path) -> None:
    """Write `xml`, and its weights beside it as .bin, from the file `onnx`.

    Raises:
        UserError: when OpenVINO is not installed. StageFailed: when it cannot read the graph.
    """
    core = open_core()
    import openvino

    try:
        model = core.read_model(onnx)
    except RuntimeError as error:
        raise StageFailed(f"export: OpenVINO cannot read {onnx.name}: {' '.join(str(error).split())}") from error
    openvino.save_model(model, xml, compress_to_fp16=False)  # to compress would be another model than the one measured


def inside_openvino(xml: Path) -> Inside:
    """Of OpenVINO's form, which keeps the names that tensors have in the ONNX; before a thinning of its own.

    What is to be shown is an output of a copy of the model, so that OpenVINO cannot fuse it away: a fault of the fusing itself
    may not show. What is said raises StageFailed when OpenVINO cannot run the copy.
    """

    def say(names: Iterable[str], images: NDArray[np.float32]) -> Tensors:
        try:
            return _shown(open_core().read_model(xml), names, images)
        except RuntimeError as error:
            detail = " ".join(str(error).split())
            raise StageFailed(f"{xml.name}: OpenVINO cannot say what is inside: {detail}") from error

    return say


def _shown(model: Any, names: Iterable[str], images: NDArray[np.float32]) -> Tensors:
    present = {name for op in model.get_ordered_ops() for port in op.outputs() for name in port.get_names()}
    shown = as_seen(names, present)
    if OUTPUT in shown and RAW in present:
        shown[OUTPUT] = RAW
    if not shown:
        return {}
    already = {name for port in model.outputs for name in port.get_names()}
    model.add_outputs(sorted(set(shown.values()) - already))
    running = compiled(model)
    parts = [[running(image[None])[tensor].astype(np.float32) for tensor in shown.values()] for image in images]
    return {name: np.concatenate(values) for name, values in zip(shown, zip(*parts, strict=True), strict=True)}
