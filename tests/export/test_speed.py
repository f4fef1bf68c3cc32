"""Speed: percentiles of calls in turn, warm, at a stated batch and number of threads."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nightowl.export import speed
from nightowl.export.speed import cpu_model, measure_speed, timing_of, torch_threads


def test_percentiles_are_of_calls_and_throughput_of_images() -> None:
    timing = timing_of(8, [0.1] * 98 + [0.2, 1.0])
    assert (timing.batch, timing.num_calls) == (8, 100)
    assert timing.p50_seconds == pytest.approx(0.1)
    assert 0.2 < timing.p99_seconds < 1.0
    assert timing.images_per_second == pytest.approx(8 * 100 / 11.0)


def test_all_run_in_turn_warm_and_at_each_batch_on_their_own_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SECONDS", 0.0)
    calls: list[tuple[str, tuple[int, ...]]] = []

    def a_runner(name: str):  # type: ignore[no-untyped-def]
        def run(batch: NDArray[np.float32]) -> NDArray[np.float32]:
            calls.append((name, batch.shape))
            return batch

        return run

    small, large = np.zeros((3, 3, 4, 4), np.float32), np.zeros((3, 3, 8, 8), np.float32)
    measured = measure_speed({"a": (a_runner("a"), small), "b": (a_runner("b"), large)}, threads=1)
    assert [shape[0] for _, shape in calls] == [1] * 14 + [8] * 14
    timed = calls[2 * speed.WARM_CALLS : 14]
    assert timed == [("a", (1, 3, 4, 4)), ("b", (1, 3, 8, 8))] * speed.FEWEST_CALLS
    assert (measured.threads, [artefact.name for artefact in measured.artefacts]) == (1, ["a", "b"])
    assert measured.artefacts[0].at(8).num_calls == speed.FEWEST_CALLS


def test_torch_gets_its_threads_back() -> None:
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_the_processor_is_named_or_unknown(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: A Fast One\n")
    assert cpu_model(tmp_path / "cpuinfo") == "A Fast One"
    assert cpu_model(tmp_path / "none") != ""
