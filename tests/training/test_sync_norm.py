"""SyncBatchNorm: where it is refused, what it replaces, and, on two GPUs, that two ranks compute what one does."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import BatchNorm2d, SyncBatchNorm

from nightowl.errors import ParamsError, StageFailed
from nightowl.training.group import Alone, Group
from nightowl.training.plan import Plan
from nightowl.training.step import Stepper
from nightowl.training.stopping import AnyStop
from nightowl.training.sync_norm import synchronise
from nightowl.training.yolo import build, set_training
from tests.training.processes import run
from tests.training.standins import a_batch, a_plan


def on_gpus(plan: Plan, world_size: int = 2) -> Plan:
    return replace(plan, device="cuda:0", world_size=world_size)


def test_it_is_refused_on_the_cpu() -> None:
    with pytest.raises(ParamsError, match=r"train\.sync_batch_norm: expected CUDA devices, this training is on: cpu; set it"):
        build(a_plan(sync_batch_norm=True))


@pytest.mark.parametrize(
    ("num_images", "world_size", "reason"),
    [(12, 2, "each step has four images"), (13, 1, "one rank waits for nobody"), (14, 2, "an image each")],
)
def test_ranks_that_all_have_an_image_in_every_step_can_be_synchronised(num_images: int, world_size: int, reason: str) -> None:
    synchronise(torch.nn.Sequential(BatchNorm2d(2)), on_gpus(a_plan(num_images, sync_batch_norm=True), world_size), [])


def test_a_rank_without_an_image_in_the_last_step_is_refused() -> None:
    with pytest.raises(ParamsError, match=r"each of 2 ranks in every step, found 1 in the last step of an epoch"):
        synchronise(torch.nn.Sequential(BatchNorm2d(2)), on_gpus(a_plan(13, sync_batch_norm=True)), [])


def test_it_takes_the_place_of_batchnorm_and_keeps_parameters_and_names() -> None:
    model: torch.nn.Module = build(a_plan()).learner.model
    before = dict(model.named_parameters())
    synchronise(model, on_gpus(a_plan(sync_batch_norm=True)), [])
    assert all(after is before[name] for name, after in model.named_parameters())
    assert any(isinstance(part, SyncBatchNorm) for part in model.modules())
    assert not any(isinstance(part, BatchNorm2d) for part in model.modules())
    set_training(model, ("model.0.",))
    assert {name.startswith("model.0."): part.training for name, part in model.named_modules() if name.endswith(".bn")} == {
        True: False,
        False: True,
    }


def test_on_one_device_it_has_no_effect_and_that_is_said() -> None:
    notes: list[str] = []
    model = torch.nn.Sequential(BatchNorm2d(2))
    synchronise(model, on_gpus(a_plan(sync_batch_norm=True), 1), notes)
    assert notes == ["train.sync_batch_norm has no effect on one device"]
    assert isinstance(model[0], BatchNorm2d)


def test_memory_that_runs_out_ends_the_rank_as_the_others_wait_for_it_in_a_layer() -> None:
    def fault(phase: str, epoch: int, step: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    plan = a_plan()
    stepper = Stepper(plan, build(plan).learner, Alone(), AnyStop(()), lambda: False, fault)
    stepper.plan = replace(a_plan(sync_batch_norm=True), world_size=2)
    with pytest.raises(StageFailed, match=r"cpu: out of memory in training with a share of 2 images, which train\.sync_batch"):
        stepper.take(a_batch([0, 1]), 0, 0, 2)


def one_step(group: Group, folder: Path) -> None:
    device = f"cuda:{group.rank}"
    plan = replace(a_plan(sync_batch_norm=True), device=device, world_size=group.world_size)
    stepper = Stepper(plan, build(plan).learner, group, AnyStop(()), lambda: False, lambda *_: None)
    set_training(stepper.learner.model, ())
    numbers = [0, 1, 2, 3][group.rank :: group.world_size]
    stepper.take(a_batch(numbers), 0, 0, 4)
    state = stepper.learner.model.state_dict()
    torch.save({name: value.cpu() for name, value in state.items()}, folder / f"{group.world_size}-{group.rank}.pt")


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_two_ranks_have_the_statistics_of_one_over_the_whole_batch(tmp_path: Path) -> None:
    for world_size in (1, 2):
        assert run(one_step, tmp_path, world_size, device="cuda") == [0] * world_size
    whole, *ranks = (torch.load(tmp_path / f"{name}.pt", weights_only=True) for name in ("1-0", "2-0", "2-1"))
    for name, value in whole.items():
        for rank in ranks:
            torch.testing.assert_close(rank[name], value, rtol=1e-3, atol=1e-4, msg=name)
