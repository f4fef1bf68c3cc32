"""A file that ships, opened by what it is called: the one place that knows which runner a format needs."""

from pathlib import Path

from nightowl.errors import UserError
from nightowl.evaluation.openvino import OpenVinoRunner
from nightowl.evaluation.runners import OnnxRunner, ShippedRunner
from nightowl.export.engine import TensorRtRunner

SUFFIXES = (".onnx", ".xml", ".engine")


def open_artefact(path: Path, threads: int = 0) -> ShippedRunner:
    """The runner of the model file `path`, with `threads` threads on a CPU (0: all cores).

    Raises:
        UserError: for another suffix, or when the library that the format needs is not installed.
        WeightsError: when the file is absent, broken, or was not exported by nightowl.
    """
    if path.suffix == ".onnx":
        return OnnxRunner(path, threads)
    if path.suffix == ".xml":
        return OpenVinoRunner(path, threads)
    if path.suffix == ".engine":
        return TensorRtRunner(path)
    raise UserError(f"{path}: expected a model file that ends in {', '.join(SUFFIXES)}")
