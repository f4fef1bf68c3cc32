"""A detector so small that a test can afford it: yolo11n on 96 pixels with random weights, sharpened so that scores differ."""

import os
from functools import cache

import torch

from nightowl.evaluation.card import ModelCard
from nightowl.evaluation.model_file import ModelRecord
from nightowl.evaluation.operating import ClassThreshold, OperatingPoint
from nightowl.evaluation.postprocess import Head
from nightowl.params import EvaluateParams

CLASSES = ("open", "short", "spur")
SIZE = 96


@cache
def tiny_module(head: Head = "raw") -> torch.nn.Module:
    """The same module every time; nobody may change it. `end2end` is yolo26n with its NMS-free head."""
    os.environ |= {"YOLO_OFFLINE": "1", "YOLO_AUTOINSTALL": "false"}
    from ultralytics.nn.tasks import DetectionModel

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = DetectionModel("yolo11n.yaml" if head == "raw" else "yolo26n.yaml", nc=len(CLASSES), verbose=False).eval()
    model.names = dict(enumerate(CLASSES))
    detect = model.model[-1]
    detect.end2end = head == "end2end"
    for branch in [*detect.cv3, *getattr(detect, "one2one_cv3", [])]:
        branch[-1].weight.data *= 60
        branch[-1].bias.data[:] = -2.0
    return model


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
