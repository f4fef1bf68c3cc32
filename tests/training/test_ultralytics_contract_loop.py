"""Our loop against ultralytics' own: given the same batches, the same weights, EMA and optimizer, bit for bit."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from ultralytics.models.yolo.detect import DetectionTrainer
from ultralytics.nn.tasks import DetectionModel

from nightowl.training.architecture import architecture
from nightowl.training.images import to_targets
from nightowl.training.plan import Plan, arguments
from nightowl.training.progress import Progress
from nightowl.training.state import State, capture, digest
from tests.training.standins import CLASSES, FP32, SIZE, NumberLoader, a_plan, a_training


class _Batches:
    """A data loader as ultralytics' trainer uses it, over our batches."""

    def __init__(self, plan: Plan) -> None:
        self.loader = NumberLoader(plan.num_images, plan.params.global_batch)
        self.epoch = 0
        self.batch_size, self.drop_last, self.num_workers = plan.params.global_batch, False, 0
        self.sampler = self.dataset = range(plan.num_images)

    def __len__(self) -> int:
        return self.loader.num_steps()

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        for batch in self.loader.steps(self.epoch):
            targets = to_targets(batch, torch.device("cpu"), SIZE, torch.contiguous_format)
            yield {**targets, "img": torch.from_numpy(batch.images)}
        self.epoch += 1

    def reset(self) -> None:
        return


class _Upstream(DetectionTrainer):
    """Ultralytics' trainer, untouched but for where data come from and that nothing is validated or written."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        given = {
            **arguments(plan.params, plan.image_size, plan.compute),
            "multi_scale": 0.0,
            "device": "cpu",
            "save_dir": str(folder),
            "val": False,
            "workers": 0,
            "model": "yolo11n.yaml",
        }
        super().__init__(overrides=given)

    def run_callbacks(self, event: str) -> None:
        return

    def get_dataset(self) -> dict[str, object]:
        return {"train": "", "val": "", "names": dict(enumerate(CLASSES)), "nc": len(CLASSES), "channels": 3}

    def setup_model(self) -> None:
        assert self.plan.architecture is not None
        self.model = DetectionModel(dict(self.plan.architecture), nc=len(CLASSES), verbose=False)

    def _build_train_pipeline(self) -> None:
        super(DetectionTrainer, self)._build_train_pipeline()

    def get_dataloader(self, *args: object, **options: object) -> _Batches:
        return _Batches(self.plan)

    def get_validator(self) -> Any:
        return SimpleNamespace(metrics=SimpleNamespace(keys=[]))

    def validate(self) -> tuple[dict[str, float], float]:
        return {}, 0.5

    def save_model(self) -> bool:
        return False

    def final_eval(self) -> None:
        return


def upstream_state(plan: Plan, folder: Path) -> State:
    trainer = _Upstream(plan, folder)
    trainer.train()
    learner = SimpleNamespace(
        model=trainer.model,
        ema=trainer.ema,
        optimizer=trainer.optimizer,
        scaler=trainer.scaler,
        criterion=SimpleNamespace(updates=getattr(trainer.model.criterion, "updates", 0)),
        compute=FP32,
        description={},
        resolved={"optimizer": trainer.args.optimizer, "lr0": trainer.args.lr0, "warmup_bias_lr": trainer.args.warmup_bias_lr},
        best=None,
    )
    return capture(learner, Progress(micro_batch=1, val_batch=1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "train", "reason"),
    [
        ("yolo11n.yaml", {"optimizer": "AdamW"}, "one branch"),
        ("yolo11n.yaml", {"optimizer": "auto", "freeze": (0, 1)}, "the chosen optimizer; frozen layers keep their BatchNorm"),
        ("yolo26n.yaml", {"optimizer": "MuSGD", "lr0": 0.01}, "two branches whose weights move, and an optimizer of its own"),
        ("yolo11n.yaml", {"optimizer": "SGD", "lr0": 0.01, "warmup_epochs": 0.0}, "momentum that never warms up"),
    ],
)
def test_two_undisturbed_epochs_equal_ultralytics_own_bit_for_bit(
    tmp_path: Path, name: str, train: dict[str, object], reason: str
) -> None:
    plan = replace(a_plan(num_images=10, base=name, **train), architecture=architecture(name))
    training = a_training(plan, num_val=2)
    training.train()
    ours, theirs = capture(training.learner, training.progress), upstream_state(plan, tmp_path)
    for part in ("model", "ema", "ema_updates", "optimizer", "criterion_updates", "resolved"):
        assert digest({part: ours[part]}) == digest({part: theirs[part]}), f"{reason}: {part}"
