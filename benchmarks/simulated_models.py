"""Blood-cell-like truth and detectors whose true quality is known, for trials of the gate.

About thirteen objects an image in three classes (nearly all of one), as in BCCD. An object and an image are hard or easy for
every model; a model has luck of its own with each image. `skill` moves a model's recall, scores and boxes together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.bootstrap import weighted_average_precision
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.matches import Matches, precompute_matches
from nightowl.evaluation.truth import Truth

CLASSES = ("RBC", "WBC", "Platelets")
_PER_IMAGE, _SIZES = (11.0, 1.0, 1.2), (100.0, 200.0, 40.0)  # objects, pixels
_WIDTH, _HEIGHT = 640.0, 480.0
_FALSE_ALARMS = 6.0  # an image


@dataclass(frozen=True, eq=False)
class World:
    """Truth of I images with how hard each object (M,) is for any model."""

    truth: Truth
    hardness: NDArray[np.float64]


def a_world(random: np.random.Generator, num_images: int) -> World:
    counts = random.poisson(_PER_IMAGE, (num_images, len(CLASSES)))
    counts[:, 1] = np.maximum(counts[:, 1], 1)
    image, class_id = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(counts.shape))
    size = np.array(_SIZES)[class_id][:, None] * random.uniform(0.7, 1.3, (len(image), 2))
    truth = Truth(
        CLASSES,
        tuple(f"{index:05}.jpg" for index in range(num_images)),
        image.astype(np.int32),
        class_id.astype(np.int32),
        _placed(random, size),
        np.zeros(len(image), np.bool_),
    )
    return World(truth, random.normal(0, 0.7, len(image)) + random.normal(0, 0.5, num_images)[image])


def a_model(random: np.random.Generator, world: World, skill: float) -> Matches:
    """What a model of `skill` (0 is usual) finds in the world, matched with its truth."""
    truth = world.truth
    ease = skill - world.hardness + random.normal(0, 0.3, len(truth.images))[truth.image_index]
    hits = np.flatnonzero(random.random(len(ease)) < _sigmoid(3.0 + ease))
    boxes, sides = truth.boxes_xyxy[hits], np.tile(truth.boxes_xyxy[hits, 2:] - truth.boxes_xyxy[hits, :2], 2)
    moved = boxes + random.normal(0, 1, boxes.shape) * sides * (0.06 * np.exp(-0.4 * ease[hits]))[:, None]
    alarms = random.poisson(_FALSE_ALARMS, len(truth.images))
    alarm_class = random.choice(len(CLASSES), alarms.sum(), p=np.array(_PER_IMAGE) / sum(_PER_IMAGE))
    alarm_size = np.array(_SIZES)[alarm_class][:, None] * random.uniform(0.7, 1.3, (alarms.sum(), 2))
    scores = [_sigmoid(1.5 + ease[hits] + random.normal(0, 0.8, len(hits))), _sigmoid(random.normal(-2, 1, alarms.sum()))]
    detections = Detections(
        CLASSES,
        truth.images,
        np.concatenate([truth.image_index[hits], np.repeat(np.arange(len(alarms)), alarms)]).astype(np.int32),
        np.concatenate([truth.class_id[hits], alarm_class]).astype(np.int32),
        np.concatenate(scores).astype(np.float32),
        np.concatenate([moved, _placed(random, alarm_size)]).astype(np.float32),
    )
    return precompute_matches(truth, detections, 300)


def mean_average_precision(matches: Matches) -> float:
    return float(np.nanmean(weighted_average_precision(matches, np.ones((1, len(matches.images)), np.int32))))


def skill_of(points: float, num_images: int = 6000) -> float:
    """The skill whose true mAP50-95 lies `points` above that of skill 0, measured on many images."""
    random = np.random.default_rng(20)
    world = a_world(random, num_images)
    skills = np.linspace(-0.3, 0.3, 7)
    quality = [mean_average_precision(a_model(np.random.default_rng(21), world, skill)) for skill in skills]
    line = np.polynomial.Polynomial.fit(skills, quality, 2).convert()
    fine = np.linspace(-0.4, 0.4, 8001)
    return float(fine[np.argmin(np.abs(line(fine) - line(0) - points / 100))])


def _placed(random: np.random.Generator, size: NDArray[np.float64]) -> NDArray[np.float64]:
    """boxes_xyxy of these sizes somewhere in the image."""
    corner = random.uniform(0, 1, size.shape) * (np.array([_WIDTH, _HEIGHT]) - size)
    return np.concatenate([corner, corner + size], axis=1)


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = 1 / (1 + np.exp(-x))
    return result
