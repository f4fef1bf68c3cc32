import time
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
import torch

from nightowl.training.hardware import GpuSample, HardwareMonitor, NvmlGpu, gpu_of, summarise

COOL = GpuSample(busy_percent=90, used_bytes=4, total_bytes=16, celsius=60, clock_mhz=1900, full_clock_mhz=2000, watts=200)
HOT = COOL.model_copy(update={"celsius": 90.0, "clock_mhz": 1000.0, "held_back_by": ("too hot (driver)",)})
IDLE = COOL.model_copy(update={"busy_percent": 2.0, "clock_mhz": 300.0, "held_back_by": ("power limit",)})
NOTHING = GpuSample(
    busy_percent=None, used_bytes=None, total_bytes=None, celsius=None, clock_mhz=None, full_clock_mhz=None, watts=None
)


class FakeNvml:
    """The part of pynvml that is used, of a GPU whose sensors answer what `answers` says; what it lacks is not supported.

    Constants are those of the real module.
    """

    NVMLError = pynvml.NVMLError

    def __init__(self, **answers: Any) -> None:
        self.answers = {"nvmlDeviceGetHandleByUUID": "handle", "nvmlDeviceGetName": b"NVIDIA Fake"} | answers

    def __getattr__(self, name: str) -> Any:
        assert hasattr(pynvml, name), f"pynvml has no {name}"
        if not name.startswith("nvmlDevice"):
            return getattr(pynvml, name)

        def answer(*_: object) -> Any:
            if name not in self.answers:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            return self.answers[name]

        return answer


WHOLE = FakeNvml(
    nvmlDeviceGetUtilizationRates=SimpleNamespace(gpu=97, memory=40),
    nvmlDeviceGetMemoryInfo=SimpleNamespace(used=8 << 30, total=16 << 30),
    nvmlDeviceGetTemperature=83,
    nvmlDeviceGetClockInfo=1500,
    nvmlDeviceGetMaxClockInfo=2000,
    nvmlDeviceGetPowerUsage=249_500,
    nvmlDeviceGetCurrentClocksThrottleReasons=(
        pynvml.nvmlClocksThrottleReasonSwThermalSlowdown | pynvml.nvmlClocksThrottleReasonGpuIdle
    ),
)


def test_every_sensor_is_read_in_its_unit() -> None:
    gpu = NvmlGpu(WHOLE, "GPU-1")
    assert gpu.name == "NVIDIA Fake"
    assert gpu.sample() == GpuSample(
        busy_percent=97,
        used_bytes=8 << 30,
        total_bytes=16 << 30,
        celsius=83,
        clock_mhz=1500,
        full_clock_mhz=2000,
        watts=249.5,
        held_back_by=("too hot (driver)",),
    )


def test_what_the_driver_does_not_tell_is_missing_not_zero() -> None:
    assert NvmlGpu(FakeNvml(), "GPU-1").sample() == NOTHING
    summary = summarise("GPU", [NOTHING, NOTHING])
    assert (summary.busy_percent, summary.celsius, summary.cost_percent, summary.num_samples) == (None, None, None, 2)
    assert summary.warning() is None


@pytest.mark.parametrize(
    ("samples", "cost", "reason"),
    [
        ([COOL] * 4, 0.0, "a clock below the full one that nothing holds back is the GPU's own choice"),
        ([HOT] * 4, 50.0, "half the clock all the time"),
        ([COOL, COOL, COOL, HOT], 12.5, "half the clock a quarter of the time"),
        ([HOT, IDLE, IDLE], 50.0, "a GPU at rest is not held back"),
        ([IDLE], None, "it never worked"),
        ([NOTHING], None, "nobody knows"),
    ],
)
def test_the_cost_is_the_clock_that_was_missing_while_it_worked(
    samples: list[GpuSample], cost: float | None, reason: str
) -> None:
    assert summarise("GPU", samples).cost_percent == (None if cost is None else pytest.approx(cost)), reason


def test_a_gpu_that_is_held_back_is_a_warning_with_its_cost() -> None:
    summary = summarise("NVIDIA Fake", [COOL, HOT, HOT, HOT])
    assert summary.held_back == {"too hot (driver)": 0.75}
    assert summary.warning() == (
        "NVIDIA Fake is held back (too hot (driver) 75% of the time; up to 90 °C): about 38 % slower than its full clock"
    )
    assert (summary.celsius, summary.most_celsius, summary.busy_percent) == (82.5, 90, 90)
    assert summarise("GPU", [COOL] * 99 + [HOT]).warning() is None, "half a percent is not worth a line"


class Fixed:
    name = "NVIDIA Fake"

    def sample(self) -> GpuSample:
        return HOT


def test_the_monitor_samples_while_it_watches_and_warns_once() -> None:
    said: list[str] = []
    monitor = HardwareMonitor(Fixed(), said.append, every_seconds=0.01)
    monitor.check()
    assert said == [] and monitor.summary() is None and monitor.newest() is None
    with monitor.watching():
        time.sleep(0.2)
        monitor.check()
        monitor.check()
        assert monitor.newest() == HOT
    assert len(said) == 1 and "about 50 % slower" in said[0]
    summary = monitor.summary()
    assert summary is not None and summary.num_samples > 2


def test_without_a_gpu_there_is_nothing_to_tell() -> None:
    said: list[str] = []
    with HardwareMonitor(gpu_of("cpu"), said.append).watching() as monitor:
        monitor.check()
    assert monitor.summary() is None and monitor.newest() is None and said == []


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_real_gpu_tells_what_it_is_doing() -> None:
    gpu = gpu_of("0")
    assert gpu is not None
    sample = gpu.sample()
    assert sample.total_bytes is not None and sample.busy_percent is not None and sample.full_clock_mhz is not None
