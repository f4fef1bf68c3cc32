"""Figures of classes, sizes and slices under resamples, and the rules on them."""

from dataclasses import replace

import numpy as np
import pytest

from nightowl.evaluation.average_precision import average_precision
from nightowl.evaluation.bootstrap import draw_weights, weighted_average_precision
from nightowl.evaluation.evidence import Evidence
from nightowl.evaluation.gate import judge
from nightowl.evaluation.gather import Against, Seen, gather
from nightowl.evaluation.matches import precompute_matches
from nightowl.evaluation.metrics import SizeMetrics, SliceMetrics
from nightowl.evaluation.part_rules import Drop, drop_checks, floor_checks
from nightowl.evaluation.parts import Part, PartFigure, Resamples, figures_of_parts
from nightowl.evaluation.sizes import SIZES
from nightowl.evaluation.slices import Slice
from nightowl.evaluation.truth import truth_of
from nightowl.params import GateParams
from tests.evaluation.scenes import CLASSES, a_scene
from tests.evaluation.test_gate import measured

IMAGES, DETECTIONS = a_scene(3, num_images=40, scale=3)
TRUTH = truth_of(CLASSES, IMAGES)
RESAMPLES = Resamples(draw_weights(np.arange(40), 50, 0), np.arange(40))
LOT = Slice(name="lot", images=TRUTH.images[:15])


def test_figures_of_parts_are_the_evaluators() -> None:
    figures = figures_of_parts(TRUTH, DETECTIONS, RESAMPLES, ["class", "size", "slice"], [LOT], 300)
    expected = average_precision(TRUTH, DETECTIONS, 300)
    for index, name in enumerate(CLASSES[:3]):
        assert figures[Part("class", name)].figure == pytest.approx(expected.per_class(0.5)[index], abs=1e-6)
    for size in SIZES:
        assert figures[Part("size", size)].figure == pytest.approx(np.nanmean(expected.per_class(0.5, size)), abs=1e-6)
    assert Part("class", "never") not in figures
    assert figures[Part("slice", "lot")].num_images <= 15


def test_a_resample_of_a_slice_is_that_of_the_whole_with_its_other_images_left_out() -> None:
    figures = figures_of_parts(TRUTH, DETECTIONS, RESAMPLES, ["slice"], [LOT], 300)
    weights = RESAMPLES.weights.copy()
    weights[:, 15:] = 0
    average = weighted_average_precision(precompute_matches(TRUTH, DETECTIONS, 300), weights)[:, 0]
    assert np.allclose(figures[Part("slice", "lot")].drawn, np.nanmean(average[:, :3], axis=1), atol=1e-12)


def test_only_what_params_limit_is_resampled() -> None:
    seen, against = Seen(TRUTH, DETECTIONS), Against(TRUTH, DETECTIONS, DETECTIONS)
    nothing = gather(GateParams(num_resamples=100), seen, against, None, (), 300, None)
    assert (dict(nothing.floors), list(nothing.drops)) == ({}, [])
    gate = GateParams(num_resamples=100, min_size_map50={"small": 0.1}, max_drop_size_map50=0.1)
    some = gather(gate, seen, against, None, [LOT], 300, None)
    assert {part.kind for part in some.floors} == {"size"}
    assert {drop.part for drop in some.drops} == {*(Part("size", size) for size in SIZES), Part("slice", "lot")}
    assert all(drop.ours == drop.theirs and not drop.differences.any() for drop in some.drops)


def figure(value: float, spread: float, num_independent: int = 40) -> PartFigure:
    drawn = np.random.default_rng(0).normal(value, spread, 1000)
    return PartFigure(value, drawn, num_independent, num_independent)


@pytest.mark.parametrize(
    ("value", "spread", "images", "passed", "undecided", "reason"),
    [
        (0.6, 0.3, 40, True, False, "above its floor, however uncertain"),
        (0.3, 0.02, 40, False, False, "shown to be below"),
        (0.48, 0.1, 40, False, True, "below, but perhaps by chance"),
        (0.1, 0.01, 3, False, True, "three images show nothing"),
    ],
)
def test_a_part_below_its_floor_fails_when_that_is_shown(
    value: float, spread: float, images: int, passed: bool, undecided: bool, reason: str
) -> None:
    candidate = measured({"open": value})
    (check,) = floor_checks(GateParams(min_class_ap50=0.5), candidate, {Part("class", "open"): figure(value, spread, images)})
    assert (check.rule, check.passed, check.undecided) == ("AP50 floor: open", passed, undecided), reason
    assert ("may be chance" in check.detail) == undecided, reason


def test_a_finding_among_many_parts_needs_more_evidence_than_one_alone() -> None:
    """A figure 2.2 standard errors below its floor: shown alone, not shown among thirty."""
    one = {Part("class", "c0"): figure(0.5 - 0.022, 0.01)}
    many = one | {Part("class", f"c{i}"): figure(0.5 - 0.001, 0.01) for i in range(1, 30)}
    gate = GateParams(min_class_ap50=0.5)
    for parts, shown in ((one, True), (many, False)):
        checks = floor_checks(gate, measured({part.name: parts[part].figure for part in parts}), parts)
        assert (not checks[0].passed and not checks[0].undecided) == shown


def test_without_resamples_the_figure_decides() -> None:
    (check,) = floor_checks(GateParams(rule="point", min_class_ap50=0.5), measured({"open": 0.49}), {})
    assert (check.passed, check.undecided) == (False, False)


def test_a_size_or_slice_that_is_not_in_test_could_not_be_measured() -> None:
    gate = GateParams(min_size_map50={"large": 0.3}, min_slice_map50={"golden": 0.9})
    verdict = judge(gate, measured({"open": 0.8}), None, None)
    assert verdict.outcome == "undecided"
    assert [check.detail for check in verdict.checks if check.figure is None] == [
        "mAP50 of large objects could not be measured: the 72 test images hold none",
        "mAP50 of slice golden could not be measured: the 72 test images hold none",
    ]


def test_floors_of_sizes_and_slices_are_held_against_the_metrics() -> None:
    sizes = (SizeMetrics(size="small", num_truth=9, ap50=0.2, ap50_95=0.1, ar100=0.1),)
    slices = (SliceMetrics(name="golden", num_images=9, num_truth=9, map50=0.95, map50_95=0.8, classes=()),)
    candidate = measured({"open": 0.8}, sizes=sizes, slices=slices)
    gate = GateParams(rule="point", min_size_map50={"small": 0.3}, min_slice_map50={"golden": 0.9})
    verdict = judge(gate, candidate, None, None)
    table = {check.rule: (check.figure, check.limit, check.passed) for check in verdict.checks}
    assert table["mAP50 floor: small objects"] == (0.2, 0.3, False)
    assert table["mAP50 floor: slice golden"] == (0.95, 0.9, True)
    assert verdict.outcome == "refuse"


def drop(ours: float, theirs: float, spread: float, kind: str = "slice", num: int = 40) -> Drop:
    drawn = np.random.default_rng(1).normal(ours - theirs, spread, 1000)
    return Drop(Part(kind, "lot=3"), ours, theirs, 0.1, drawn, num, num)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lost", "spread", "rule", "passed", "words"),
    [
        (0.05, 0.01, "non_inferiority", True, "at most 10 points less allowed"),
        (0.30, 0.02, "non_inferiority", False, "and more is shown (95 % confidence over all parts)"),
        (0.15, 0.10, "non_inferiority", True, "may be chance: it occurs in 40 independent images"),
        (0.15, 0.10, "point", False, "at most 10 points less allowed"),
    ],
)
def test_what_a_slice_lost(lost: float, spread: float, rule: str, passed: bool, words: str) -> None:
    gate = GateParams.model_validate({"rule": rule})
    (check,) = drop_checks(gate, [drop(0.8 - lost, 0.8, spread)], "4")
    assert (check.rule, check.passed) == ("mAP50 drop: slice lot=3", passed)
    assert check.figure == pytest.approx(lost)
    assert words in check.detail
    assert (check.interval is None) == (rule == "point")


def test_the_interval_of_a_drop_bounds_the_drop() -> None:
    (check,) = drop_checks(GateParams(), [drop(0.5, 0.8, 0.02)], "4")
    assert check.interval is not None and check.interval.low < 0.3 < check.interval.high


def test_an_even_larger_loss_of_a_slice_alone_refuses() -> None:
    evidence = Evidence(drops=[drop(0.4, 0.8, 0.02)])
    from tests.evaluation.test_gate import pinned

    champion = measured({"open": 0.8}, "champion")
    verdict = judge(GateParams(rule="point"), measured({"open": 0.8}), champion, pinned(("open",)), evidence=evidence)
    assert verdict.outcome == "refuse"
    assert "of slice lot=3 than version 4 on the same 40 images" in verdict.sentence


def test_truth_among_other_classes_is_that_of_the_dataset() -> None:
    among, expected = TRUTH.among(("c", "a")), truth_of(CLASSES, IMAGES, ("c", "a"))
    for name in ("image_index", "class_id", "boxes_xyxy", "ignore"):
        assert np.array_equal(getattr(among, name), getattr(expected, name))
    assert among.classes == ("c", "a") and replace(among, classes=CLASSES[:2]).images == expected.images
