"""An exported model on OpenVINO, for a line PC without a GPU: the optional part `openvino` of the installation.

The card that the ONNX carries is in the .xml too. It computes in float32 like the measured ONNX: left to itself, OpenVINO takes
bfloat16 on a processor that is fast in it, and ships other boxes there than here. Its telemetry is never imported.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nightowl.errors import StageFailed, UserError, WeightsError
from nightowl.evaluation.card import ModelCard, from_metadata

_METADATA = "framework"  # where OpenVINO keeps the metadata of the ONNX that it read


class OpenVinoRunner:
    """A model in OpenVINO's form (.xml, its .bin beside it) on the CPU.

    Raises:
        UserError: when OpenVINO is not installed.
        WeightsError: when a file is absent or broken, or was not exported by nightowl.
        StageFailed: when it is called with a batch that it cannot run on.
    """

    def __init__(self, path: Path, threads: int = 0) -> None:
        """Open `path`; `threads` is the number of threads it may use, 0 for all cores."""
        core = open_core()
        for part in (path, path.with_suffix(".bin")):
            if not part.is_file():
                raise WeightsError(f"{part}: no such model file; OpenVINO needs the .xml and its .bin beside it")
        try:
            model = core.read_model(path, path.with_suffix(".bin"))
        except RuntimeError as error:
            raise WeightsError(f"{path}: expected a model of OpenVINO's, it cannot open it: {_one_line(error)}") from error
        self.card: ModelCard = from_metadata(path, metadata_of(model))
        try:
            self._path, self._compiled = path, compiled(model, threads)
        except RuntimeError as error:
            raise WeightsError(f"{path}: OpenVINO cannot compile it for this processor: {_one_line(error)}") from error

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        try:
            return np.array(self._compiled(batch)[0], np.float32)  # a copy: the next call overwrites its own
        except RuntimeError as error:
            detail = _one_line(error)
            raise StageFailed(f"{self._path}: OpenVINO cannot run it on {batch.shape}: {detail}; export it again") from error


def open_core() -> Any:
    """OpenVINO, ready. Raises UserError when it is not installed."""
    try:
        import openvino
    except ImportError as error:
        raise UserError("OpenVINO is not installed: pip install 'nightowl[openvino]'") from error
    return openvino.Core()


def compiled(model: Any, threads: int = 0) -> Any:
    """A model of OpenVINO's, ready to run in float32 on the CPU with `threads` threads (0: all cores). Raises RuntimeError."""
    options = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    if threads:
        options["INFERENCE_NUM_THREADS"] = str(threads)
    return open_core().compile_model(model, "CPU", options)


def metadata_of(model: Any) -> dict[str, str]:
    """The metadata of the ONNX that an OpenVINO model was made from."""
    if not model.has_rt_info([_METADATA]):
        return {}
    found = model.get_rt_info([_METADATA]).value
    return {str(name): str(value) for name, value in found.items()}


def _one_line(error: RuntimeError) -> str:
    return " ".join(str(error).split())
