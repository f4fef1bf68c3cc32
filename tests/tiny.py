"""A detector so small that a test can afford it: yolo11n on 96 pixels with random weights, sharpened so that scores differ."""

from functools import cache

import PIL.Image
import torch

from nightowl.evaluation.card import ModelCard
from nightowl.evaluation.model_file import ModelRecord
from nightowl.evaluation.operating import ClassThreshold, OperatingPoint
from nightowl.evaluation.postprocess import Head
from nightowl.params import EvaluateParams
from nightowl.training.quiet import silence

CLASSES = ("open", "short", "spur")
SIZE = 96


def quiet_ultralytics() -> None:
    """Import it without a word, and give Pillow its opener back: ultralytics' own wants more packages for a broken image."""
    silence()
    from ultralytics.utils import patches

    PIL.Image.open = patches._image_open


@cache
def tiny_module(head: Head = "raw") -> torch.nn.Module:
    """The same module every time; nobody may change it. `end2end` is yolo26n with its NMS-free head."""
    quiet_ultralytics()
    from ultralytics.nn.tasks import DetectionModel

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = DetectionModel("yolo11n.yaml" if head == "raw" else "yolo26n.yaml", nc=len(CLASSES), verbose=False)
        _settle(model)
    model.names = dict(enumerate(CLASSES))
    detect = model.model[-1]
    detect.end2end = head == "end2end"
    for scores in [*detect.cv3, *getattr(detect, "one2one_cv3", [])]:
        scores[-1].bias.data[:] = -2.0
    for sides in [*detect.cv2, *getattr(detect, "one2one_cv2", [])]:
        sides[-1].weight.data *= 0.3
        sides[-1].bias.data[:] = _small_boxes(detect.reg_max)
    return model.eval()


def _small_boxes(num_bins: int) -> torch.Tensor:
    """A bias (4 * bins) for boxes of two to three strides a side, which mostly lie inside the image."""
    bins = torch.arange(num_bins)
    return (-((bins - 1.2) ** 2)).repeat(4) if num_bins > 1 else torch.full((4,), 1.2)


def _settle(model: torch.nn.Module) -> None:
    """Let BatchNorm see coloured squares once: with its initial statistics every anchor would say the same."""
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.momentum = 1.0
    with torch.no_grad():
        model.train()(torch.nn.functional.interpolate(torch.rand(16, 3, 6, 6), (SIZE, SIZE)))


def tiny_card(head: Head = "raw", overall: float | None = 0.3) -> ModelCard:
    return ModelCard(
        model=ModelRecord(
            architecture="yolo11n.yaml",
            classes=CLASSES,
            image_size=SIZE,
            head=head,
            weights_sha256="0" * 64,
            base="yolo11n.yaml",
            base_sha256=None,
            epochs_done=1,
            best_epoch=0,
        ),
        operating=OperatingPoint(
            split="val",
            dataset_version="1" * 64,
            overall=overall,
            classes=tuple(ClassThreshold(name=name, confidence=None) for name in CLASSES),
        ),
        limits=EvaluateParams(),
    )
