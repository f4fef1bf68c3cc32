"""Memory that runs out in the middle of a training, on one rank of two, and in validation."""

import json
from pathlib import Path

import pytest
import torch

from nightowl.errors import StageFailed
from nightowl.training.memory import is_out_of_memory
from nightowl.training.progress import Progress
from tests.training import trials
from tests.training.processes import run
from tests.training.standins import a_plan, a_training


@pytest.mark.parametrize(
    ("error", "says_so"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:124] . DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (MemoryError(), True),
        (RuntimeError("The size of tensor a (3) must match"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_memory_is_told_from_other_errors(error: Exception, says_so: bool) -> None:
    assert is_out_of_memory(error) is says_so


def test_it_halves_down_to_one_image_and_remembers() -> None:
    progress, sizes = Progress(micro_batch=5, val_batch=1), []
    while (smaller := progress.halved("training")) is not None:
        progress = smaller
        sizes.append(progress.micro_batch)
    assert sizes == [3, 2, 1]
    assert [(shrink.before, shrink.after) for shrink in progress.shrunk] == [(5, 3), (3, 2), (2, 1)]
    assert progress.halved("validation") is None


def test_one_image_that_does_not_fit_is_a_clear_end() -> None:
    def never_fits(phase: str, epoch: int, step: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(
        StageFailed, match=r"out of memory in training with one image of 64 px at once; lower prepare\.image_size"
    ):
        a_training(a_plan(), fault=never_fits).train()


def test_memory_that_runs_out_on_one_of_two_ranks_changes_no_loss(tmp_path: Path) -> None:
    """In epoch 2, in training and in validation; BatchNorm is frozen, as halves would see other statistics."""
    done = []
    for work in (trials.without_memory_trouble, trials.memory_runs_out):
        folder = tmp_path / work.__name__
        folder.mkdir()
        assert run(work, folder, 2) == [0, 0], [path.read_text() for path in folder.glob("error-*.txt")]
        done.append(json.loads((folder / "done.json").read_text()))
    plain, troubled = done
    assert [(each["phase"], each["epoch"]) for each in troubled["shrunk"]] == [("training", 1), ("validation", 1)]
    assert plain["shrunk"] == []
    assert len(plain["losses"]) == len(troubled["losses"])
    for before, after in zip(plain["losses"], troubled["losses"], strict=True):
        assert after == pytest.approx(before, rel=1e-5)
