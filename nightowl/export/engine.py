"""An engine, run like any other artefact: on the kind of machine that it was built for, or not at all."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from nightowl.errors import WeightsError
from nightowl.evaluation.card import ModelCard
from nightowl.export import tensorrt
from nightowl.export.engine_record import EngineRecord, Fingerprint, differences, read_fingerprint
from nightowl.files import sha256_file


class Memory(Protocol):
    """Arrays on the device that engines compute on."""

    def put(self, array: NDArray[np.float32]) -> Any: ...
    def empty(self, shape: tuple[int, ...]) -> Any: ...
    def address(self, array: Any) -> int: ...
    def stream(self) -> int: ...
    def read(self, array: Any) -> NDArray[np.float32]:
        """Its content, once the work on the stream is done."""


class TorchMemory:
    """Memory of a torch device."""

    def __init__(self, device: str = "cuda:0") -> None:
        import torch

        self._device = torch.device(device)
        on_gpu = self._device.type == "cuda"
        self._stream = torch.cuda.Stream(self._device) if on_gpu else None  # type: ignore[no-untyped-call]

    def put(self, array: NDArray[np.float32]) -> Any:
        import torch

        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    def empty(self, shape: tuple[int, ...]) -> Any:
        import torch

        return torch.empty(shape, dtype=torch.float32, device=self._device)

    def address(self, array: Any) -> int:
        return int(array.data_ptr())

    def stream(self) -> int:
        """The work begins after what was copied to the device so far."""
        if self._stream is None:
            return 0
        import torch

        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        return int(self._stream.cuda_stream)

    def read(self, array: Any) -> NDArray[np.float32]:
        if self._stream is not None:
            self._stream.synchronize()
        return np.asarray(array.cpu().numpy(), np.float32)


class TensorRtRunner:
    """An engine with its record (NAME.json) beside it; more images than it takes at once go in parts.

    Raises:
        UserError: without TensorRT or a GPU.
        WeightsError: when the engine is absent, damaged, or built for another kind of machine; the difference is named.
    """

    def __init__(self, path: Path, here: Fingerprint | None = None, memory: Memory | None = None) -> None:
        record = read_engine_record(path)
        self.card: ModelCard = record.card
        if sha256_file(path) != record.engine_sha256:
            raise WeightsError(f"{path}: not the engine of its record {path.with_suffix('.json').name}: damaged or exchanged")
        wrong = differences(record, here or read_fingerprint()[0])
        if wrong:
            raise WeightsError(f"{path}: not for this machine: {'; '.join(wrong)}; build one here: nightowl engine build")
        self._engine = tensorrt.Engine(path.read_bytes(), record.options.version_compatible, str(path))
        self._memory = memory or TorchMemory()

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        most = self._engine.max_batch
        return np.concatenate([self._run(batch[start : start + most]) for start in range(0, len(batch), most)])

    def _run(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        num = len(batch)
        if num < self._engine.min_batch:
            batch = batch[np.arange(self._engine.min_batch) % num]
        given = self._memory.put(batch)
        output = self._memory.empty(self._engine.output_shape(batch.shape))
        self._engine.run(self._memory.address(given), self._memory.address(output), self._memory.stream())
        return self._memory.read(output)[:num]


def read_engine_record(path: Path) -> EngineRecord:
    """The record beside the engine `path`. Raises WeightsError when one of the two is absent, or it is something else."""
    beside = path.with_suffix(".json")
    for needed in (path, beside):
        if not needed.is_file():
            raise WeightsError(f"{needed}: no such file; an engine needs its record beside it")
    try:
        return EngineRecord.model_validate_json(beside.read_bytes())
    except ValidationError as error:
        raise WeightsError(f"{beside}: not the record of an engine: {error.errors()[0]['msg']}") from error
