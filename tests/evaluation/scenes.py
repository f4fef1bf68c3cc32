"""Random truth and detections that resemble each other, for the evaluator's tests."""

import numpy as np

from nightowl.data.manifest import Box, Image
from nightowl.evaluation.detections import Detections

CLASSES = ("a", "b", "c", "never")


def a_scene(seed: int, num_images: int = 12, crowds: bool = True, scale: float = 1.0) -> tuple[tuple[Image, ...], Detections]:
    """Labelled images, and detections that hit, miss, double and mistake them; the class `never` has no truth. At a
    `scale` of 3 there are boxes of all three of COCO's sizes."""
    random = np.random.default_rng(seed)
    images, rows = [], []
    for index in range(num_images):
        boxes = []
        for _ in range(random.integers(0, 8)):
            x, y = random.uniform(0, 80, 2)
            w, h = random.uniform(4, 40, 2)
            class_id = int(random.integers(0, 3))
            corners = (scale * x, scale * y, scale * (x + w), scale * (y + h))
            boxes.append(Box(class_id, *corners, bool(crowds and random.random() < 0.15)))
            for _ in range(random.integers(0, 3)):
                moved = np.array([x, y, x + w, y + h]) + random.normal(0, 3, 4)
                seen = class_id if random.random() < 0.8 else int(random.integers(0, 4))
                rows.append((index, seen, round(random.random(), 2), *(scale * np.sort(moved.reshape(2, 2), axis=0)).ravel()))
        images.append(Image(f"{index:03}.png", "0" * 64, 1, 120, 120, "test", tuple(boxes)))
    table = np.array(rows).reshape(-1, 7)
    detections = Detections(
        CLASSES,
        tuple(image.path for image in images),
        table[:, 0].astype(np.int32),
        table[:, 1].astype(np.int32),
        table[:, 2].astype(np.float32),
        table[:, 3:].astype(np.float32),
    )
    return tuple(images), detections
