"""How long 1,000 paired resamples over 5,000 images and 80 classes take: `python -m benchmarks.bootstrap`.

Synthetic truth of COCO's density (about seven objects an image), two models, and many false alarms of low score, as a
detector measured from confidence 0.001 up gives.
"""

import argparse
import resource
import time

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.bootstrap import compare, draw_weights
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.matches import precompute_matches
from nightowl.evaluation.truth import Truth

SIDE = 640.0


def boxes_at(random: np.random.Generator, number: int) -> NDArray[np.float64]:
    """Random boxes_xyxy (number, 4) inside a square image."""
    size = random.uniform(10, 200, (number, 2))
    corner = random.uniform(0, 1, (number, 2)) * (SIDE - size)
    return np.concatenate([corner, corner + size], axis=1)


def a_truth(random: np.random.Generator, num_images: int, num_classes: int, per_image: float) -> Truth:
    number = int(num_images * per_image)
    return Truth(
        tuple(f"class {index}" for index in range(num_classes)),
        tuple(f"{index:06}.png" for index in range(num_images)),
        np.sort(random.integers(num_images, size=number)).astype(np.int32),
        random.integers(num_classes, size=number).astype(np.int32),
        boxes_at(random, number),
        random.random(number) < 0.01,
    )


def a_model(random: np.random.Generator, truth: Truth, per_image: float) -> Detections:
    """Nearly every object found more or less well, and false alarms up to `per_image` detections."""
    hits = np.flatnonzero(random.random(len(truth.class_id)) < 0.9)
    width = np.repeat(truth.boxes_xyxy[hits, 2:] - truth.boxes_xyxy[hits, :2], 2, axis=1)[:, [0, 2, 1, 3]]
    moved = truth.boxes_xyxy[hits] + random.normal(0, 0.06, (len(hits), 4)) * width
    alarms = max(int(len(truth.images) * per_image) - len(hits), 0)
    return Detections(
        truth.classes,
        truth.images,
        np.concatenate([truth.image_index[hits], random.integers(len(truth.images), size=alarms)]).astype(np.int32),
        np.concatenate([truth.class_id[hits], random.integers(len(truth.classes), size=alarms)]).astype(np.int32),
        np.concatenate([random.beta(3, 2, len(hits)), random.beta(1, 12, alarms)]).astype(np.float32),
        np.concatenate([moved, boxes_at(random, alarms)]).astype(np.float32),
    )


def clocks() -> tuple[float, float]:
    """Seconds on the wall and of the processor: they differ where the machine is shared."""
    return time.perf_counter(), time.process_time()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in {"images": 5000, "classes": 80, "objects": 7, "detections": 100, "resamples": 1000}.items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"default {value}")
    given = parser.parse_args()
    random = np.random.default_rng(0)
    truth = a_truth(random, given.images, given.classes, given.objects)
    models = [a_model(random, truth, given.detections) for _ in range(2)]
    start = clocks()
    candidate, champion = (precompute_matches(truth, model, 300) for model in models)
    matched = clocks()
    paired = compare(candidate, champion, draw_weights(np.arange(given.images), given.resamples, 0))
    done = clocks()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{given.images} images, {given.classes} classes, {len(truth.class_id)} objects, {len(models[0])} detections a model")
    for what, before, after in (
        ("matching both models", start, matched),
        (f"{given.resamples} paired resamples", matched, done),
    ):
        print(f"{what:<24}{after[0] - before[0]:7.1f} s, of one core {after[1] - before[1]:.1f} s")
    print(f"{'peak memory of it all':<24}{peak:7.0f} MB")
    low, high = np.quantile(paired.of_mean(), [0.025, 0.975])
    print(f"difference of mAP50-95: {paired.of_mean().mean():+.4f}, 95 % within {low:+.4f} and {high:+.4f}")


if __name__ == "__main__":
    main()
