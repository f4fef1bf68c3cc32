"""The GPU while it trains: how busy, how full, how hot, how fast, and what holds its clock back.

A thread samples it by NVML every few seconds. What the driver does not tell is missing, never zero. A clock that is held back
while the GPU works costs time; how much is told in percent.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any, Protocol

from nightowl.records import Record

EVERY_SECONDS = 5.0
BUSY_PERCENT = 50.0  # below, a low clock is only rest
WORTH_SAYING_PERCENT = 3.0
_REASONS = {
    "nvmlClocksThrottleReasonSwPowerCap": "power limit",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "too hot (hardware)",
    "nvmlClocksThrottleReasonSwThermalSlowdown": "too hot (driver)",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power supply",
    "nvmlClocksThrottleReasonHwSlowdown": "hardware slowdown",
    "nvmlClocksThrottleReasonApplicationsClocksSetting": "clock set by a user",
    "nvmlClocksThrottleReasonSyncBoost": "clock tied to another GPU",
}


class GpuSample(Record):
    """One look at a GPU; None is what the driver does not tell. `held_back_by`: what keeps its clock low now."""

    busy_percent: float | None
    used_bytes: int | None
    total_bytes: int | None
    celsius: float | None
    clock_mhz: float | None
    full_clock_mhz: float | None
    watts: float | None
    held_back_by: tuple[str, ...] = ()


class HardwareSummary(Record):
    """A training's GPU in figures, over `num_samples` looks. `held_back` maps a reason to the share of the working time, and
    `cost_percent` is how much slower the work was for it: the clock that was missing, over all working time."""

    device: str
    num_samples: int
    busy_percent: float | None
    most_used_bytes: int | None
    total_bytes: int | None
    celsius: float | None
    most_celsius: float | None
    clock_mhz: float | None
    full_clock_mhz: float | None
    watts: float | None
    held_back: dict[str, float]
    cost_percent: float | None

    def warning(self) -> str | None:
        """The line about a GPU that was held back, or None when that cost little."""
        if self.cost_percent is None or self.cost_percent < WORTH_SAYING_PERCENT:
            return None
        reasons = ", ".join(
            f"{reason} {share:.0%} of the time" for reason, share in sorted(self.held_back.items(), key=lambda item: -item[1])
        )
        heat = "" if self.most_celsius is None else f"; up to {self.most_celsius:.0f} °C"
        return f"{self.device} is held back ({reasons}{heat}): about {self.cost_percent:.0f} % slower than its full clock"


def summarise(device: str, samples: Sequence[GpuSample]) -> HardwareSummary:
    """What `samples`, taken at equal distances, say together."""
    working = [sample for sample in samples if (sample.busy_percent or 0.0) >= BUSY_PERCENT]
    reasons = sorted({reason for sample in working for reason in sample.held_back_by})
    return HardwareSummary(
        device=device,
        num_samples=len(samples),
        busy_percent=_mean(sample.busy_percent for sample in samples),
        most_used_bytes=max((s.used_bytes for s in samples if s.used_bytes is not None), default=None),
        total_bytes=next((s.total_bytes for s in samples if s.total_bytes is not None), None),
        celsius=_mean(sample.celsius for sample in samples),
        most_celsius=max((s.celsius for s in samples if s.celsius is not None), default=None),
        clock_mhz=_mean(sample.clock_mhz for sample in working),
        full_clock_mhz=next((s.full_clock_mhz for s in samples if s.full_clock_mhz is not None), None),
        watts=_mean(sample.watts for sample in samples),
        held_back={reason: fmean(reason in sample.held_back_by for sample in working) for reason in reasons},
        cost_percent=_cost_percent(working),
    )


def _cost_percent(working: Sequence[GpuSample]) -> float | None:
    """100 * (1 - mean of clock / full clock), where a sample that nothing holds back counts as full."""
    known = [s for s in working if s.clock_mhz is not None and s.full_clock_mhz]
    if not known:
        return None
    return 100.0 * fmean(
        max(0.0, 1.0 - s.clock_mhz / s.full_clock_mhz) if s.held_back_by and s.clock_mhz and s.full_clock_mhz else 0.0
        for s in known
    )


class Gpu(Protocol):
    """A GPU that can be looked at."""

    @property
    def name(self) -> str: ...

    def sample(self) -> GpuSample: ...


class HardwareMonitor:
    """Samples `gpu` in a thread while it is `watching`. None stands for no GPU: then there is nothing to tell."""

    def __init__(self, gpu: Gpu | None, say: Callable[[str], None], every_seconds: float = EVERY_SECONDS) -> None:
        self._gpu, self._say, self._every_seconds = gpu, say, every_seconds
        self._samples: list[GpuSample] = []
        self._over = threading.Event()
        self._warned = False

    @contextmanager
    def watching(self) -> Iterator["HardwareMonitor"]:
        if self._gpu is None:
            yield self
            return
        thread = threading.Thread(target=self._watch, args=(self._gpu,), name="hardware", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def newest(self) -> GpuSample | None:
        """The last look, None before the first."""
        return self._samples[-1] if self._samples else None

    def summary(self) -> HardwareSummary | None:
        """What was seen so far; None without a GPU, or before the first look."""
        return summarise(self._gpu.name, tuple(self._samples)) if self._gpu is not None and self._samples else None

    def check(self) -> None:
        """Say once that the GPU is held back, when that costs something; to be called now and then, as at an epoch's end."""
        summary = self.summary()
        warning = summary.warning() if summary is not None else None
        if warning is not None and not self._warned:
            self._warned = True
            self._say(warning)

    def _watch(self, gpu: Gpu) -> None:
        while not self._over.is_set():
            self._samples.append(gpu.sample())
            self._over.wait(self._every_seconds)


class NvmlGpu:
    """A GPU by NVML, or by what stands in for that module."""

    def __init__(self, nvml: Any, uuid: str) -> None:
        self._nvml = nvml
        self._handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        name = nvml.nvmlDeviceGetName(self._handle)
        self.name: str = name.decode() if isinstance(name, bytes) else name
        self._full_clock = self._ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(self._handle, nvml.NVML_CLOCK_SM))

    def sample(self) -> GpuSample:
        nvml, handle = self._nvml, self._handle
        memory = self._ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        milliwatts = self._ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        bits = self._ask(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0
        return GpuSample(
            busy_percent=self._ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
            used_bytes=memory.used if memory else None,
            total_bytes=memory.total if memory else None,
            celsius=self._ask(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            clock_mhz=self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            full_clock_mhz=self._full_clock,
            watts=None if milliwatts is None else milliwatts / 1000,
            held_back_by=tuple(words for name, words in _REASONS.items() if bits & getattr(nvml, name)),
        )

    def _ask(self, question: Callable[[], Any]) -> Any:
        """The driver's answer, or None: many a GPU lacks some of the sensors."""
        try:
            return question()
        except self._nvml.NVMLError:
            return None


def gpu_of(device: str) -> Gpu | None:
    """The GPU that torch calls `device` (`cuda:0` or `0`), or None: for `cpu`, without NVML, or where that does not know it."""
    if device == "cpu":
        return None
    import pynvml
    import torch

    uuid = f"GPU-{torch.cuda.get_device_properties(int(device.removeprefix('cuda:'))).uuid}"
    try:
        pynvml.nvmlInit()
        return NvmlGpu(pynvml, uuid)
    except pynvml.NVMLError:
        return None


def _mean(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
