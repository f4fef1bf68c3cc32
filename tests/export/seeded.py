"""A detector made by hand, and all that an export of it is held against, so that seeded faults can be looked for cheaply.

It finds squares of three colours: 20 pixels wide in its input of 64, an anchor every 4 pixels. Its layers are named as the
exporter names a yolo's: `/model.0` measures colours, `/model.1` looks for squares of one, `/model.2` is the head.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import Tensor, nn

from nightowl.data.manifest import Box, Image, Manifest, Split, in_order
from nightowl.evaluation.detect import detect, model_of
from nightowl.evaluation.evaluate import Subject
from nightowl.evaluation.measure import measure, sources_of
from nightowl.evaluation.operating import ClassThreshold, OperatingPoint
from nightowl.evaluation.preprocess import letterbox, plan_letterbox
from nightowl.evaluation.runners import TorchRunner
from nightowl.export.onnx import traced
from nightowl.export.trained import Trained
from nightowl.files import sha256_file
from nightowl.params import EvaluateParams
from tests.tiny import tiny_card

CLASSES = ("red", "green", "blue")
SIZE, CELL, SIDE = 64, 4, 20
LIMITS = EvaluateParams(confidence_floor=0.01, nms_iou=0.5)
_BGR = ((60, 50, 200), (50, 180, 60), (190, 70, 50))


class _Head(nn.Module):
    """Scores (B, 3, 16, 16) to (B, 4 + 3, 256): a box of fixed size around each cell."""

    def __init__(self) -> None:
        super().__init__()
        centre = (torch.arange(SIZE // CELL) + 0.5) * CELL
        y, x = torch.meshgrid(centre, centre, indexing="ij")
        self.boxes = nn.Parameter(torch.stack([x, y, torch.full_like(x, SIDE), torch.full_like(x, SIDE)]).reshape(1, 4, -1))

    def forward(self, squares: Tensor) -> Tensor:
        scores = squares.sigmoid().flatten(2)
        moved = self.boxes + scores.amax(1, keepdim=True) / 8  # so that boxes, too, depend on what is seen
        return torch.cat([moved, scores], 1)


class Squares(nn.Module):
    """`sharpness`: how suddenly the score rises; another one is another model."""

    def __init__(self, sharpness: float = 12.0) -> None:
        super().__init__()
        colours, squares = nn.Conv2d(3, 3, CELL, CELL), nn.Conv2d(3, 3, 7, padding=3)
        cells = torch.tensor([[2.0, -0.9, -0.8], [-0.9, 2.0, -0.8], [-0.8, -0.9, 2.0]]) / CELL**2
        colours.weight.data = cells[:, :, None, None].expand(3, 3, CELL, CELL).clone()
        colours.bias.data[:] = 0.05
        ring = torch.full((7, 7), -1 / 24)
        ring[1:6, 1:6] = 1 / 25
        squares.weight.data = torch.zeros(3, 3, 7, 7)
        squares.weight.data[range(3), range(3)] = sharpness * ring
        squares.bias.data[:] = -0.45 * sharpness
        self.model = nn.Sequential(nn.Sequential(colours, nn.ReLU()), squares, _Head())

    def forward(self, images: Tensor) -> Tensor:
        for part in self.model:  # called one by one, as ultralytics does: the graph is named after them
            images = part(images)
        return images


@cache
def module(sharpness: float = 12.0) -> Squares:
    return Squares(sharpness).eval()


@cache
def graph(sharpness: float = 12.0) -> onnx.ModelProto:
    """Of `module`, in FP32; nobody may change it."""
    return traced(module(sharpness), SIZE, 17)


def first_weights(model: onnx.ModelProto) -> onnx.TensorProto:
    node = next(node for node in model.graph.node if node.op_type == "Conv")
    return next(weight for weight in model.graph.initializer if weight.name == node.input[1])


def altered(change: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> onnx.ModelProto:
    """The graph with its first convolution's weights changed."""
    model = onnx.ModelProto()
    model.CopyFrom(graph())
    weights = first_weights(model)
    values = change(numpy_helper.to_array(weights)).astype(np.float32)
    weights.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), weights.name))
    return model


def a_trained_model(folder: Path) -> Trained:
    """What an export is held against; twelve images each of train and test lie in `folder`."""
    names = [(split, f"{split}-{index}.jpg", index) for split in ("train", "test") for index in range(12)]
    dataset = Manifest(CLASSES, in_order([_picture(folder, name, split, seed) for split, name, seed in names]), "given")  # type: ignore[arg-type]
    plain = tiny_card().model.model_copy(update={"classes": CLASSES, "image_size": SIZE})
    runner, sources = TorchRunner(module()), sources_of(dataset, "test", folder)
    found = detect(model_of(plain, runner), sources, LIMITS, "trained")
    threshold = _in_the_widest_gap(found.detections.score)
    thresholds = tuple(ClassThreshold(name=name, confidence=threshold) for name in CLASSES)
    point = OperatingPoint(split="val", dataset_version="1" * 64, overall=threshold, classes=thresholds)
    card = tiny_card().model_copy(update={"model": plain, "operating": point, "limits": LIMITS})
    subject = Subject("trained", plain.weights_sha256, dataset.version(), "test", 0.0)
    return Trained(
        module=module(),
        runner=runner,
        card=card,
        graph=graph(),
        dataset=dataset,
        folder=folder,
        metrics=measure(dataset, CLASSES, found, subject, LIMITS, threshold).metrics,
        detections=found.detections,
        inputs=np.stack([letterbox(source.load(), SIZE)[0] for source in sources[:3]]),
        sources=sources,
        seen=found.detections,
    )


def _in_the_widest_gap(scores: NDArray[np.float32]) -> float:
    """A threshold that no score is near to, so that a rounding moves none across."""
    ranked = np.sort(scores[(scores > 0.2) & (scores < 0.8)])
    widest = int(np.argmax(np.diff(ranked)))
    return float(ranked[widest : widest + 2].mean())


def _picture(folder: Path, name: str, split: Split, seed: int) -> Image:
    """Squares on grey noise, twice the network's size; with an odd number of rows to fill, which have to be rounded."""
    random = np.random.default_rng([seed, split == "test"])
    height, width = 2 * (SIZE - 2 * int(random.integers(3)) - 1), 2 * SIZE
    pixels = random.integers(90, 140, (height, width, 3)).astype(np.uint8)
    boxes, (plan, _) = [], plan_letterbox(width, height, SIZE)
    for column in (4, 10):  # the cells that squares are on, a pixel beside their middle at most: none is half in each of two
        for row in (3, 10):  # and the upper ones look at the padding
            centre = [(cell + 0.5) * CELL + int(random.integers(-1, 2)) for cell in (column, row)]
            left, top = (
                int(2 * (middle - SIDE / 2 - pad)) for middle, pad in zip(centre, (plan.pad_x, plan.pad_y), strict=True)
            )
            class_id = int(random.integers(3))
            pixels[max(top, 0) : top + 2 * SIDE, left : left + 2 * SIDE] = _BGR[class_id]
            boxes.append(Box(class_id, left, max(top, 0), left + 2 * SIDE, min(top + 2 * SIDE, height)))
    path = folder / name
    cv2.imwrite(str(path), pixels, [cv2.IMWRITE_JPEG_QUALITY, 95])
    return Image(name, sha256_file(path), path.stat().st_size, width, height, split, tuple(boxes))
