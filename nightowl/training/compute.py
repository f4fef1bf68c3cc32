"""In which numbers and in which memory order a training computes: chosen once by what the machine has, then kept.

`auto` is decided here and goes into the training's state, so that going on elsewhere computes as it began. Who only reads
of it, as a report does, need not load torch.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nightowl.params import TrainParams
from nightowl.records import Record

if TYPE_CHECKING:
    import torch

Precision = Literal["fp32", "bf16", "fp16"]
MemoryFormat = Literal["contiguous", "channels_last"]
_BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16"})


class Compute(Record):
    """How a training computes. Weights, EMA and optimizer are fp32 always; this is the arithmetic of forward and backward.

    `colours_on_device`: HSV gains are applied there, to whole batches; else by the loader. They differ by two levels at most.
    """

    precision: Precision
    memory_format: MemoryFormat
    colours_on_device: bool = False

    def autocast(self, device: "torch.device") -> AbstractContextManager[object]:
        import torch

        dtype = torch.float16 if self.precision == "fp16" else torch.bfloat16
        return torch.autocast(device.type, dtype, enabled=self.precision != "fp32")

    @property
    def torch_format(self) -> "torch.memory_format":
        import torch

        return torch.channels_last if self.memory_format == "channels_last" else torch.contiguous_format


def choose_compute(params: TrainParams, device: str, fast_bf16: bool) -> Compute:
    """What params ask for; `auto` is bf16 with channels last where the device computes in it fast, else fp32.

    A GPU takes channels last in any precision, and the colours. `fast_bf16`: see `has_fast_bf16`.
    """
    precision: Precision = ("bf16" if fast_bf16 else "fp32") if params.precision == "auto" else params.precision
    on_gpu = not device.startswith("cpu")
    chosen: MemoryFormat = "channels_last" if on_gpu or precision != "fp32" else "contiguous"
    memory_format = chosen if params.memory_format == "auto" else params.memory_format
    return Compute(precision=precision, memory_format=memory_format, colours_on_device=on_gpu)


def has_fast_bf16(device: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether `device` has instructions for bf16: a GPU that says so, or a CPU with AVX-512 BF16 or AMX."""
    if not device.startswith("cpu"):
        import torch

        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return False
    return any(_BF16_FLAGS & set(line.split()) for line in lines if line.startswith("flags"))
