"""The comparison takes classes, images and lots as they are."""

from dataclasses import replace

import numpy as np
import pytest

from nightowl.data.manifest import Image
from nightowl.errors import DataError
from nightowl.evaluation.comparison import Comparison, compare_detections
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.truth import truth_of
from nightowl.params import GateParams
from tests.evaluation.scenes import CLASSES, a_scene


def two_models(num_images: int = 12, paths: list[str] | None = None) -> tuple[tuple[Image, ...], Detections, Detections]:
    images, champion = a_scene(3, num_images)
    named = tuple(replace(i, path=path) for i, path in zip(images, paths or [i.path for i in images], strict=True))
    champion = replace(champion, images=tuple(image.path for image in named))
    return named, champion.from_confidence(0.3), champion


def comparing(paths: list[str] | None = None, **gate: object) -> Comparison:
    images, candidate, champion = two_models(paths=paths)
    params = GateParams.model_validate({"num_resamples": 100, **gate})
    return compare_detections(truth_of(CLASSES, images), candidate, champion, params, 100)


def test_only_classes_that_occur_are_compared() -> None:
    comparison = comparing()
    assert len(comparison.of_mean) == 100
    assert set(comparison.of_class) == set(comparison.num_independent_of_class) == {"a", "b", "c"}


def test_a_model_against_itself_differs_by_nothing() -> None:
    images, _, champion = two_models()
    comparison = compare_detections(truth_of(CLASSES, images), champion, champion, GateParams(num_resamples=100), 100)
    assert not comparison.of_mean.any()


def test_the_same_data_give_the_same_comparison() -> None:
    assert np.array_equal(comparing().of_mean, comparing().of_mean)


def test_images_of_a_lot_count_as_one() -> None:
    paths = [f"lot{index // 4}/{index:02}.png" for index in range(12)]
    assert comparing(paths).num_independent == 12
    by_lot = comparing(paths, group_pattern="lot[0-9]+")
    assert by_lot.num_independent == max(by_lot.num_independent_of_class.values()) == 3
    assert len(np.unique(by_lot.of_mean)) <= 10, "three lots can be drawn in ten ways"


def test_an_image_without_a_lot_is_named() -> None:
    paths = [*(f"lot1/{index:02}.png" for index in range(11)), "stray.png"]
    with pytest.raises(DataError, match=r"gate\.group_pattern.*does not match 1 of 12 test images, first stray\.png"):
        comparing(paths, group_pattern="lot[0-9]+")
