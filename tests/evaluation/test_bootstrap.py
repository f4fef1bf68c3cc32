"""Resamples by weights are what evaluating the resampled images would give."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightowl.data.manifest import Image
from nightowl.evaluation.average_precision import average_precision
from nightowl.evaluation.bootstrap import compare, draw_weights, group_index, weighted_average_precision
from nightowl.evaluation.detections import Detections, gather
from nightowl.evaluation.matches import Matches, precompute_matches
from nightowl.evaluation.truth import truth_of
from tests.evaluation.scenes import CLASSES, a_scene

NUM_IMAGES = 8


def scene_without_ties(seed: int) -> tuple[tuple[Image, ...], Detections]:
    """Scores all differ: how equal scores of different images are ordered is no property of the images."""
    images, detections = a_scene(seed, NUM_IMAGES)
    scores = np.random.default_rng(seed).permutation(len(detections)) / 1000
    return images, replace(detections, score=scores.astype(np.float32))


def matches_of(seed: int, images_of: int | None = None) -> Matches:
    images, detections = scene_without_ties(seed)
    truth_images = images if images_of is None else scene_without_ties(images_of)[0]
    return precompute_matches(truth_of(CLASSES, truth_images), detections, 100)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 50), weights=st.lists(st.integers(0, 3), min_size=NUM_IMAGES, max_size=NUM_IMAGES))
def test_a_weight_is_that_many_copies_of_the_image(seed: int, weights: list[int]) -> None:
    images, detections = scene_without_ties(seed)
    copies = [index for index, weight in enumerate(weights) for _ in range(weight)]
    names = [f"{place}.png" for place in range(len(copies))]
    drawn = tuple(replace(images[index], path=name) for index, name in zip(copies, names, strict=True))
    found = gather(CLASSES, names, [detections.of_image(images[index].path) for index in copies])

    truth = truth_of(CLASSES, drawn)
    ours = weighted_average_precision(matches_of(seed), np.array([weights], np.int32))[0]

    if not truth.counts().sum():
        assert np.isnan(ours).all()
        return
    expected = average_precision(truth, found, 100).precision[..., 0].mean(axis=1)
    assert np.allclose(ours, expected, atol=1e-9, equal_nan=True)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_equal_models_differ_by_exactly_nothing(seed: int) -> None:
    matches = matches_of(seed)
    paired = compare(matches, matches, draw_weights(np.arange(NUM_IMAGES), 30, seed))
    assert set(paired.of_mean()) <= {0.0}
    assert np.array_equal(paired.candidate, paired.champion, equal_nan=True)


def test_the_difference_of_two_models_changes_its_sign_when_they_change_places() -> None:
    one, other = matches_of(3), matches_of(4, images_of=3)
    weights = draw_weights(np.arange(NUM_IMAGES), 50, 0)
    assert np.array_equal(compare(one, other, weights).of_mean(), -compare(other, one, weights).of_mean())


def test_the_mean_leaves_out_classes_that_a_resample_lacks() -> None:
    one, other = matches_of(3), matches_of(4, images_of=3)
    weights = draw_weights(np.arange(NUM_IMAGES), 50, 0)
    paired = compare(one, other, weights)
    assert np.allclose(paired.of_mean(), np.nanmean(paired.differences[:, :, :3].mean(axis=1), axis=1))
    assert len(paired.of_class_at_50(3)) == 0


@pytest.mark.parametrize(("num_resamples", "why"), [(1, "one"), (300, "more than are computed at once")])
def test_resamples_do_not_depend_on_how_many_are_computed_at_once(num_resamples: int, why: str) -> None:
    weights = draw_weights(np.arange(NUM_IMAGES), num_resamples, 7)
    matches = matches_of(5)
    single = [weighted_average_precision(matches, weights[i : i + 1])[0] for i in range(num_resamples)]
    assert np.array_equal(weighted_average_precision(matches, weights), np.array(single), equal_nan=True), why


def test_the_same_seed_draws_the_same_and_another_draws_others() -> None:
    images = np.arange(20)
    assert np.array_equal(draw_weights(images, 5, 1), draw_weights(images, 5, 1))
    assert not np.array_equal(draw_weights(images, 5, 1), draw_weights(images, 5, 2))


def test_each_resample_draws_as_many_images_as_there_are() -> None:
    assert (draw_weights(np.arange(20), 100, 0).sum(axis=1) == 20).all()


def test_images_of_one_group_are_drawn_together() -> None:
    weights = draw_weights(group_index(["lot-a", "lot-b", "lot-a", "lot-c", "lot-b"]), 200, 0)
    assert np.array_equal(weights[:, 0], weights[:, 2]) and np.array_equal(weights[:, 1], weights[:, 4])
    assert not np.array_equal(weights[:, 0], weights[:, 1])
    assert (weights[:, [0, 1, 3]].sum(axis=1) == 3).all()


def test_no_images_draw_nothing() -> None:
    assert draw_weights(np.arange(0), 3, 0).shape == (3, 0)
