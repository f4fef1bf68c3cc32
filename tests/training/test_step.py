"""One optimizer step, in parts and whole. BatchNorm is frozen where parts are to equal the whole."""

from collections.abc import Callable
from functools import partial

import pytest
import torch

from nightowl.training.compute import Compute, Precision
from nightowl.training.group import Alone
from nightowl.training.state import capture, digest
from nightowl.training.step import OutOfMemory, Stepper, Taken
from nightowl.training.stopping import AnyStop
from nightowl.training.yolo import build
from tests.training.standins import FP32, a_batch, a_plan


def a_stepper(name: str, fault: Callable[[str, int, int], None] = lambda *_: None) -> Stepper:
    plan = a_plan(base=name, global_batch=6, optimizer="SGD", lr0=0.01)
    stepper = Stepper(plan, build(plan).learner, Alone(), AnyStop(()), lambda: False, fault)
    stepper.learner.model.train()
    return stepper


def freeze_batchnorm(model: torch.nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.eval()


@pytest.mark.parametrize("name", ["yolo11n.yaml", "yolo26n.yaml"])
@pytest.mark.parametrize("micro_batch", [1, 2, 4])
def test_parts_of_a_batch_give_the_losses_and_weights_of_the_whole(name: str, micro_batch: int) -> None:
    results = []
    for size in (6, micro_batch):
        stepper = a_stepper(name)
        freeze_batchnorm(stepper.learner.model)
        taken = stepper.take(a_batch([0, 1, 2, 3, 4, 5]), 0, 0, size)
        assert isinstance(taken, Taken) and taken.losses is not None
        results.append((taken.losses, {k: v.clone() for k, v in stepper.learner.model.named_parameters()}))
    (losses, weights), (in_parts, weights_in_parts) = results
    assert in_parts == pytest.approx(losses, rel=1e-5)
    for key, value in weights.items():
        torch.testing.assert_close(weights_in_parts[key], value, rtol=1e-4, atol=1e-6, msg=key)


def test_each_branch_touches_its_own_parameters_only() -> None:
    """So that each can have its own normaliser."""
    learner = a_stepper("yolo26n.yaml").learner
    from nightowl.training.images import to_targets

    targets = to_targets(a_batch([0, 1]), torch.device("cpu"), 64, torch.contiguous_format)
    for branch, key in enumerate(("one2many", "one2one")):
        learner.optimizer.zero_grad()
        preds = learner.model(targets["img"])
        criterion = learner.criterion._branches[branch]
        criterion.loss(preds[key], targets)[0].sum().backward()
        reached = {name for name, p in learner.model.named_parameters() if p.grad is not None and bool(p.grad.any())}
        assert reached and {learner.criterion.branch_of(name) for name in reached} == {branch}


def test_out_of_memory_leaves_everything_as_it_was() -> None:
    def fault(phase: str, epoch: int, step: int) -> None:
        calls.append(phase)
        if len(calls) == 2:  # the second of the micro-batches: BatchNorm has moved, gradients are there
            raise torch.OutOfMemoryError("CUDA out of memory")

    calls: list[str] = []
    stepper = a_stepper("yolo11n.yaml", fault)
    from nightowl.training.progress import Progress

    progress = Progress(micro_batch=3, val_batch=1)
    before = digest(capture(stepper.learner, progress))
    assert isinstance(stepper.take(a_batch([0, 1, 2, 3, 4, 5]), 0, 0, 3), OutOfMemory)
    assert digest(capture(stepper.learner, progress)) == before
    assert all(parameter.grad is None for parameter in stepper.learner.model.parameters())


def test_a_loss_that_is_no_number_changes_nothing() -> None:
    from nightowl.training.progress import Progress

    stepper = a_stepper("yolo11n.yaml")
    next(stepper.learner.model.parameters()).data[:] = torch.nan
    progress = Progress(micro_batch=3, val_batch=1)
    before = digest(capture(stepper.learner, progress))
    taken = stepper.take(a_batch([0, 1]), 0, 0, 2)
    assert isinstance(taken, Taken) and taken.losses is None
    assert digest(capture(stepper.learner, progress)) == before


def test_another_error_than_memory_is_not_caught() -> None:
    def fault(phase: str, epoch: int, step: int) -> None:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        a_stepper("yolo11n.yaml", fault).take(a_batch([0]), 0, 0, 1)


def test_an_empty_share_is_a_step_too() -> None:
    stepper = a_stepper("yolo11n.yaml")
    assert len(a_batch([])) == 0
    sums = stepper._accumulate(a_batch([]), 0, 0, 2, whole=False)
    assert sums.tolist() == [0.0] * 5


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_has_nearly_the_same_loss_and_moves_fp32_weights(precision: Precision) -> None:
    losses: list[dict[str, float]] = []
    for compute in (FP32, Compute(precision=precision, memory_format="channels_last")):
        plan = a_plan(compute=compute, optimizer="SGD", lr0=0.01)
        stepper = Stepper(plan, build(plan).learner, Alone(), AnyStop(()), lambda: False, lambda *_: None)
        stepper.learner.model.train()
        assert stepper.learner.scaler.is_enabled() == (compute.precision == "fp16")
        before = {name: value.clone() for name, value in stepper.learner.model.named_parameters()}
        for step in range(12):  # fp16 begins with a scale that is far too large, and halves it
            taken = stepper.take(a_batch([0, 1, 2, 3]), 0, step, 4)
            assert isinstance(taken, Taken) and taken.losses is not None
            losses += [taken.losses] if step == 0 else []
            if any(not torch.equal(before[name], value) for name, value in stepper.learner.model.named_parameters()):
                break
        else:
            raise AssertionError("no weight moved")
        assert {value.dtype for value in stepper.learner.model.parameters()} == {torch.float32}
    assert losses[1] == pytest.approx(losses[0], rel=0.05)


def test_gradients_that_overflow_in_fp16_lower_the_scale_and_move_no_weight() -> None:
    plan = a_plan(compute=Compute(precision="fp16", memory_format="contiguous"), optimizer="SGD", lr0=0.01)
    stepper = Stepper(plan, build(plan).learner, Alone(), AnyStop(()), lambda: False, lambda *_: None)
    learner = stepper.learner
    learner.scaler.load_state_dict({**learner.scaler.state_dict(), "scale": 2.0**60})
    before = {name: value.clone() for name, value in learner.model.named_parameters()}
    taken = stepper.take(a_batch([0, 1, 2, 3]), 0, 0, 4)
    assert isinstance(taken, Taken) and taken.losses is not None, "the loss itself is a number"
    assert learner.scaler.get_scale() == 2.0**59
    assert all(torch.equal(before[name], value) for name, value in learner.model.named_parameters())


@pytest.mark.slow
def test_a_compiled_model_takes_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traced and run as it is: what a compiler then makes of it rounds otherwise."""
    from nightowl.training.progress import Progress

    traced: list[int] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        traced.append(len(list(graph.graph.nodes)))
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    digests = []
    for compiled in (False, True):
        plan = a_plan(global_batch=4, optimizer="SGD", lr0=0.01, compile=compiled)
        stepper = Stepper(plan, build(plan).learner, Alone(), AnyStop(()), lambda: False, lambda *_: None)
        stepper.learner.model.train()
        for step in (0, 1):
            assert isinstance(stepper.take(a_batch([0, 1, 2, 3]), 0, step, 2), Taken)
        digests.append(digest(capture(stepper.learner, Progress(micro_batch=2, val_batch=1))))
    assert sum(traced) > 100 and digests[0] == digests[1]
