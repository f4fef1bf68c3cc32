from collections.abc import Mapping

import pytest

from nightowl.training.hardware import GpuSample, HardwareMonitor
from nightowl.training.onlookers import Onlookers, gpu_scalars
from nightowl.training.progress import Figures
from nightowl.training.scalars import Sinks
from nightowl.training.watch import EpochEnd, Start


class Remembering:
    """A watcher and a sink that remember what they were told."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.written: list[tuple[int, dict[str, float]]] = []

    def started(self, start: Start) -> None:
        self.heard.append("started")

    def batch_done(self, epoch: int, batch: int, losses: dict[str, float], waited_seconds: float) -> None:
        self.heard.append(f"batch {batch}")

    def validating(self, epoch: int) -> None:
        self.heard.append("validating")

    def epoch_done(self, end: EpochEnd) -> None:
        self.heard.append("epoch done")

    def note(self, text: str) -> None:
        self.heard.append(text)

    def write(self, epoch: int, scalars: Mapping[str, float]) -> None:
        self.written.append((epoch, dict(scalars)))

    def close(self) -> None: ...


def an_end(epoch: int) -> EpochEnd:
    figures = Figures(precision=0.8, recall=0.7, map50=0.6, map50_95=0.5)
    return EpochEnd(epoch, {"box_loss": 1.5}, {"pg0": 0.01}, figures, is_best=True, finished=False)


def test_the_display_hears_all_and_the_sinks_get_figures_with_speed_and_waiting() -> None:
    now, all_ = 100.0, Remembering()
    looking = Onlookers(all_, Sinks([all_], all_.note), HardwareMonitor(None, all_.note), clock=lambda: now)
    looking.started(Start(1, 0, 3, num_batches=10, num_images=80, optimizer="AdamW"))
    for batch in (1, 2, 3, 4):
        looking.batch_done(1, batch, {"box_loss": 1.5}, waited_seconds=0.5)
    now = 108.0
    looking.validating(1)
    now = 500.0
    looking.epoch_done(an_end(1))
    looking.note("said")
    assert all_.heard == ["started", "batch 1", "batch 2", "batch 3", "batch 4", "validating", "epoch done", "said"]
    ((epoch, figures),) = all_.written
    assert epoch == 1 and figures.pop("memory/peak_bytes") > 1e6
    assert figures == {
        "train/box_loss": 1.5,
        "val/precision": 0.8,
        "val/recall": 0.7,
        "val/mAP50": 0.6,
        "val/mAP50-95": 0.5,
        "lr/pg0": 0.01,
        "speed/images_per_second": pytest.approx(4 * 8 / 8),
        "speed/waiting": pytest.approx(2 / 8),
    }


def test_an_epoch_without_steps_here_has_no_speed() -> None:
    all_ = Remembering()
    looking = Onlookers(all_, Sinks([all_], all_.note), HardwareMonitor(None, all_.note))
    looking.started(Start(2, 10, 3, num_batches=10, num_images=80, optimizer="AdamW"))
    looking.validating(2)
    looking.epoch_done(an_end(2))
    assert not [name for name in all_.written[0][1] if name.startswith("speed/")]


def test_what_a_gpu_does_not_tell_is_absent() -> None:
    sample = GpuSample(
        busy_percent=90, used_bytes=4, total_bytes=16, celsius=None, clock_mhz=1900, full_clock_mhz=2000, watts=None
    )
    assert gpu_scalars(sample) == {"gpu/busy_percent": 90.0, "gpu/used_bytes": 4.0, "gpu/clock_mhz": 1900.0}
    assert gpu_scalars(None) == {}
