"""The shipped ONNX in OpenVINO's form: the same weights in the same precision, with the same card inside.

OpenVINO reads the ONNX itself; its converter with telemetry is not used. Needs the optional part `openvino`.
"""

from pathlib import Path

from nightowl.errors import StageFailed
from nightowl.evaluation.openvino import open_core


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
