"""What an engine is: of which ONNX, built on what, with which options. It lies beside the engine, and says where it may run."""

import platform
from datetime import datetime

from nightowl.errors import UserError
from nightowl.evaluation.card import ModelCard
from nightowl.export import tensorrt
from nightowl.export.parity import ParityCheck
from nightowl.export_params import TensorRtParams
from nightowl.records import Record


class Fingerprint(Record):
    """The kind of machine that an engine is for."""

    compute_capability: str
    driver: str
    tensorrt: str
    platform: str

    def key(self) -> str:
        """As part of a file's name."""
        return f"sm{self.compute_capability}-trt{self.tensorrt}-driver{self.driver}-{self.platform}"


class EngineRecord(Record):
    """An engine, and how it was held against the model when it was built: `checks`, on `num_images` test images, or, where
    there were none, on coloured patches alone; `not_on_test` says why. `gpu` is for people."""

    onnx_sha256: str
    engine_sha256: str
    num_bytes: int
    fingerprint: Fingerprint
    gpu: str
    options: TensorRtParams
    card: ModelCard
    checks: tuple[ParityCheck, ...]
    num_images: int
    not_on_test: str | None
    built_at: datetime

    def held_in_words(self) -> str:
        """On what it was held against the model."""
        if self.not_on_test is None:
            return f"held against the trained model on {self.num_images} test images"
        return f"held against the ONNX on coloured patches alone: {self.not_on_test}"


def differences(record: EngineRecord, here: Fingerprint) -> list[str]:
    """Why an engine must not run on a machine of the fingerprint `here`, a reason a line; empty when it may.

    Compatibility that it was built with is taken into account: `ampere_plus` runs on compute capability 8.0 and later, a
    version-compatible engine on later TensorRT of the same major version.
    """
    built, options = record.fingerprint, record.options
    pairs = {
        "compute capability": (built.compute_capability, here.compute_capability),
        "driver": (built.driver, here.driver),
        "TensorRT": (built.tensorrt, here.tensorrt),
        "platform": (built.platform, here.platform),
    }
    if options.hardware_compatibility == "ampere_plus" and _numbers(here.compute_capability) >= (8, 0):
        del pairs["compute capability"]
    if options.version_compatible and _is_later(built.tensorrt, here.tensorrt):
        del pairs["TensorRT"]
    return [f"{what}: built for {ours}, here {theirs}" for what, (ours, theirs) in pairs.items() if ours != theirs]


def read_fingerprint() -> tuple[Fingerprint, str]:
    """That of this machine's first GPU, and the GPU's name. Raises UserError when there is no GPU, driver, or TensorRT."""
    import torch

    trt = tensorrt.version()
    if not torch.cuda.is_available():
        raise UserError("no CUDA device here: engines are built and run where the GPU is")
    major, minor = torch.cuda.get_device_capability(0)
    found = Fingerprint(
        compute_capability=f"{major}.{minor}",
        driver=_driver(),
        tensorrt=trt,
        platform=f"{platform.system()}_{platform.machine()}".lower(),
    )
    return found, torch.cuda.get_device_name(0)


def _driver() -> str:
    import pynvml

    try:
        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError as error:
        raise UserError(f"the version of the NVIDIA driver cannot be read: {error}") from error


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _is_later(built: str, here: str) -> bool:
    """Whether `here` is the same major version, and not an earlier one."""
    return _numbers(built)[:1] == _numbers(here)[:1] and _numbers(built) <= _numbers(here)
