"""Whatever turns a batch into head outputs, behind one call, so that a model is measured by the same code in every form.

Shapes: B images, S the network's side; the output is (B, 4 + C, A) for a raw head, (B, N, 6) for an end-to-end one.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from nightowl.errors import StageFailed, WeightsError
from nightowl.evaluation.card import ModelCard, from_metadata

if TYPE_CHECKING:
    import torch


class Runner(Protocol):
    """A model ready to run."""

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """The head's output for a batch (B, 3, S, S), RGB in 0..1."""
        ...


class ShippedRunner(Runner, Protocol):
    """A file that ships, ready to run: what it is travels with it."""

    @property
    def card(self) -> ModelCard: ...


class TorchRunner:
    """A loaded torch module; of several outputs the first counts, as ultralytics has it."""

    def __init__(self, module: "torch.nn.Module", device: str = "cpu") -> None:
        self.device = device
        self.module = module.to(device).eval()

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        import torch

        with torch.inference_mode():
            output = self.module(torch.from_numpy(batch).to(self.device))
        first = output[0] if isinstance(output, tuple | list) else output
        return np.asarray(first.float().cpu().numpy(), np.float32)


class OnnxRunner:
    """An exported model on onnxruntime's CPU provider, with the card that travels inside the file.

    Raises:
        WeightsError: when the file is absent, not ONNX, or was not exported by nightowl.
        StageFailed: when it is called with a batch that it cannot run on.
    """

    def __init__(self, path: Path, threads: int = 0) -> None:
        """Open `path`; `threads` is the number of threads an operator may use, 0 for all cores."""
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as ort

        if not path.is_file():
            raise WeightsError(f"{path}: no such model file")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except (ort.Fail, ort.InvalidArgument, ort.InvalidGraph, ort.InvalidProtobuf, ort.NotImplemented) as error:
            detail = str(error).splitlines()[0]
            raise WeightsError(f"{path}: expected an ONNX model, onnxruntime cannot open it: {detail}") from error
        self._path, self._input = path, self._session.get_inputs()[0].name
        self.card: ModelCard = from_metadata(path, self._session.get_modelmeta().custom_metadata_map)

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        from onnxruntime.capi import onnxruntime_pybind11_state as ort

        try:
            return np.asarray(self._session.run(None, {self._input: batch})[0], np.float32)
        except (ort.Fail, ort.InvalidArgument, ort.RuntimeException) as error:
            detail = str(error).splitlines()[0]
            raise StageFailed(f"{self._path}: onnxruntime cannot run it on {batch.shape}: {detail}; export it again") from error
