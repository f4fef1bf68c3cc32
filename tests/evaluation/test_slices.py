"""Which images belong to a slice, and its figures."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nightowl.data.manifest import Image
from nightowl.errors import DataError
from nightowl.evaluation.average_precision import average_precision
from nightowl.evaluation.matches import precompute_matches
from nightowl.evaluation.slice_metrics import slice_metrics
from nightowl.evaluation.slices import Slice, SliceFacts, members, read_slice_facts, slices_of
from nightowl.evaluation.truth import truth_of
from nightowl.params import SliceRule
from tests.evaluation.scenes import CLASSES, a_scene

PATHS = ("lot1/a.png", "lot1/b.png", "lot2/c.png", "other/d.png")
IMAGES = tuple(Image(path, path[0] * 64, 1, 9, 9, "test", ()) for path in PATHS)
LINE = SliceRule(name="line", table="images.csv", column="line")


@pytest.mark.parametrize(
    ("rules", "facts", "expected", "why"),
    [
        ([], SliceFacts(), {}, "no rule, no slice"),
        (
            [SliceRule(name="lot", pattern="lot([0-9]+)")],
            SliceFacts(),
            {"lot=1": PATHS[:2], "lot=2": PATHS[2:3]},
            "a slice a value; an image without one is in none",
        ),
        ([SliceRule(name="lots", pattern="^lot")], SliceFacts(), {"lots": PATHS[:3]}, "without a group: what matches"),
        ([SliceRule(name="x", pattern="nothing")], SliceFacts(), {}, "an empty slice is none"),
        (
            [LINE],
            SliceFacts(columns={"line": {"lot1/a.png": "A", "other/d.png": "A", "lot2/c.png": "B", "gone.png": "C"}}),
            {"line=A": ("lot1/a.png", "other/d.png"), "line=B": ("lot2/c.png",)},
            "a column; values of images that are not in test are no slice",
        ),
        ([], SliceFacts(golden=("o" * 64, "9" * 64)), {"golden": ("other/d.png",)}, "golden by content"),
        (
            [SliceRule(name="lots", pattern="^lot"), SliceRule(name="all", pattern="png$")],
            SliceFacts(),
            {"lots": PATHS[:3], "all": PATHS},
            "slices may overlap",
        ),
    ],
)
def test_a_dataset_divides_into_named_slices(
    rules: list[SliceRule], facts: SliceFacts, expected: dict[str, tuple[str, ...]], why: str
) -> None:
    assert {one.name: one.images for one in slices_of(IMAGES, rules, facts)} == expected, why


@pytest.mark.parametrize(
    ("rules", "images", "message"),
    [
        ([LINE], IMAGES, r"line: column line of images\.csv is not pinned; pin the inputs again"),
        ([SliceRule(name="x", pattern="a"), SliceRule(name="x", pattern="b")], IMAGES, "two slices are called x"),
        (
            [SliceRule(name="n", pattern="(.*)")],
            [replace(IMAGES[0], path=f"{i}.png") for i in range(101)],
            "101 slices of 101 images; at most 100 .* set gate.group_pattern",
        ),
    ],
)
def test_slices_that_cannot_be_made_are_refused(rules: list[SliceRule], images: list[Image], message: str) -> None:
    with pytest.raises(DataError, match=message):
        slices_of(images, rules, SliceFacts())


@pytest.mark.parametrize("seed", range(4))
def test_figures_of_a_slice_equal_those_of_its_images_alone(seed: int) -> None:
    images, detections = a_scene(seed, num_images=30)
    truth = truth_of(CLASSES, images)
    part = Slice(name="part", images=truth.images[3:17])
    measured = slice_metrics(precompute_matches(truth, detections, 100), [part])[0]
    inside = members(truth.images, part)
    alone = detections.select(inside[detections.image_index])
    alone = replace(alone, images=part.images, image_index=(alone.image_index - 3).astype(np.int32))
    own_truth = truth_of(CLASSES, images[3:17])
    expected = average_precision(own_truth, alone, 100)
    assert [c.ap50 for c in measured.classes[:3]] == pytest.approx(expected.per_class(0.5)[:3].tolist(), abs=1e-6)
    assert measured.map50_95 == pytest.approx(np.nanmean(expected.per_class()), abs=1e-6)
    assert (measured.num_images, measured.num_truth) == (14, own_truth.counts().sum())


def test_a_slice_without_an_object_has_no_figures() -> None:
    images, detections = a_scene(0)
    empty = [replace(images[0], boxes=()), *images[1:]]
    matches = precompute_matches(truth_of(CLASSES, empty), detections, 100)
    measured = slice_metrics(matches, [Slice(name="one", images=(images[0].path,))])[0]
    assert (measured.num_images, measured.num_truth, measured.map50, measured.map50_95) == (1, 0, None, None)


def test_pinned_values_that_are_absent_are_none_and_broken_ones_are_said(tmp_path: Path) -> None:
    assert read_slice_facts(tmp_path / "slices.json") == SliceFacts()
    (tmp_path / "slices.json").write_text("[]")
    with pytest.raises(DataError, match="not the pinned values of slices"):
        read_slice_facts(tmp_path / "slices.json")
