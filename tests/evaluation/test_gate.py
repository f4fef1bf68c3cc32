"""The gate's decisions, told as a table of nights."""

from dataclasses import dataclass, field

import pytest

from nightowl.errors import StageFailed
from nightowl.evaluation.champion import ChampionRecord
from nightowl.evaluation.gate import judge
from nightowl.evaluation.metrics import ClassMetrics, Metrics
from nightowl.params import GateParams

Figures = dict[str, float | None]


def point(**limits: float) -> GateParams:
    """The gate that looks at the figures alone; unless told otherwise it allows no drop of mAP50-95."""
    return GateParams(rule="point", **({"margin": 0.0, "min_map50": 0.0} | limits))


def measured(ap: Figures, model: str = "candidate", num_images: int = 72, num_truth: int = 10, **changes: object) -> Metrics:
    """Metrics with AP50-95 and AP50 both `ap` a class; None is a class without truth in test."""
    known = [value for value in ap.values() if value is not None]
    mean = sum(known) / len(known) if known else None
    classes = tuple(
        ClassMetrics(
            name=name,
            num_truth=0 if value is None else num_truth,
            ap50=value,
            ap50_95=value,
            precision=None,
            recall=None,
            best_f1_confidence=None,
        )
        for name, value in ap.items()
    )
    metrics = Metrics(
        model=model,
        weights_sha256=f"{model}-weights",
        dataset_version="data-1",
        split="test",
        num_images=num_images,
        num_truth=num_truth * len(known),
        map50=mean,
        map75=mean,
        map50_95=mean,
        classes=classes,
        seconds_per_image=0.01,
    )
    return metrics.model_copy(update=changes)


def pinned(classes: tuple[str, ...], weights: str = "champion-weights") -> ChampionRecord:
    return ChampionRecord(
        detector="demo",
        version="4",
        night_key="key",
        classes=classes,
        image_size=256,
        weights_sha256=weights,
        onnx_sha256="onnx",
        dataset_version="data-0",
    )


@dataclass
class Night:
    reason: str
    candidate: Figures
    champion: Figures | None
    outcome: str
    gate: dict[str, float] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    basis: str = "against_champion"


NIGHTS = [
    Night("better everywhere", {"open": 0.6, "short": 0.7}, {"open": 0.5, "short": 0.6}, "promote"),
    Night("exactly as good is no drop", {"open": 0.6}, {"open": 0.6}, "promote"),
    Night("worse by a hair, none allowed", {"open": 0.5996}, {"open": 0.6}, "refuse", failed=("mAP50-95 drop",)),
    Night("a drop of exactly the limit is allowed", {"open": 0.50}, {"open": 0.51}, "promote", {"margin": 0.01}),
    Night(
        "better on average, but one class lost too much",
        {"open": 0.45, "short": 0.9},
        {"open": 0.6, "short": 0.6},
        "refuse",
        failed=("AP50 drop: open",),
    ),
    Night("one class lost what is allowed", {"open": 0.5, "short": 0.9}, {"open": 0.6, "short": 0.6}, "promote"),
    Night(
        "better than the champion, below the floor",
        {"open": 0.3},
        {"open": 0.2},
        "refuse",
        {"min_map50": 0.5},
        ("mAP50 floor",),
    ),
    Night(
        "a class below its floor",
        {"open": 0.1, "short": 0.9},
        {"open": 0.1, "short": 0.8},
        "refuse",
        {"min_class_ap50": 0.2},
        ("AP50 floor: open",),
    ),
    Night("the first model, floors reached", {"open": 0.8}, None, "promote", {"min_map50": 0.75}, basis="first_model"),
    Night(
        "the first model, floors missed",
        {"open": 0.7},
        None,
        "refuse",
        {"min_map50": 0.75, "min_map50_95": 0.75},
        ("mAP50 floor", "mAP50-95 floor"),
        basis="first_model",
    ),
    Night("no class in common: floors alone", {"spur": 0.1}, {"open": 0.9}, "promote", basis="no_common_class"),
    Night(
        "only common classes are compared: a hard new one costs nothing",
        {"open": 0.6, "spur": 0.1},
        {"open": 0.6},
        "promote",
    ),
    Night("a class without truth is not compared", {"open": 0.6, "spur": None}, {"open": 0.5, "spur": None}, "promote"),
    Night(
        "the common class does not occur tonight",
        {"open": None, "spur": 0.8},
        {"open": None},
        "undecided",
        failed=("mAP50-95 drop",),
    ),
    Night(
        "no labelled object at all",
        {"open": None},
        None,
        "undecided",
        failed=("mAP50 floor", "mAP50-95 floor"),
        basis="first_model",
    ),
    Night(
        "too few images to decide, however good",
        {"open": 1.0},
        {"open": 0.1},
        "undecided",
        {"min_test_images": 73},
        ("test images",),
    ),
]


@pytest.mark.parametrize("night", NIGHTS, ids=lambda night: night.reason)
def test_a_night_ends_as_the_rules_say(night: Night) -> None:
    champion = measured(night.champion, "champion") if night.champion else None
    standing = pinned(tuple(night.champion)) if night.champion else None

    verdict = judge(point(**night.gate), measured(night.candidate), champion, standing)

    assert (verdict.outcome, verdict.basis) == (night.outcome, night.basis)
    assert tuple(check.rule for check in verdict.checks if not check.passed) == night.failed
    assert verdict.promote == (night.outcome == "promote")
    assert verdict.champion_version == ("4" if night.champion else None)


@pytest.mark.parametrize(
    ("candidate", "champion", "gate", "sentence"),
    [
        (
            {"open": 0.502},
            {"open": 0.533},
            {},
            "Refused: finds 3.1 points less than version 4 on the same 72 images "
            "(mAP50-95 0.502 against 0.533); at most 0 points less allowed.",
        ),
        (
            {"open": 0.543},
            {"open": 0.533},
            {},
            "Passed: finds 1 point more than version 4 on the same 72 images "
            "(mAP50-95 0.543 against 0.533); at most 0 points less allowed.",
        ),
        (
            {"open": 0.53301},
            {"open": 0.53302},
            {},
            "Refused: finds 0.001 points less than version 4 on the same 72 images "
            "(mAP50-95 0.53301 against 0.53302); at most 0 points less allowed.",
        ),
        (
            {"open": 0.4, "short": 0.8, "pin": 0.6},
            {"open": 0.6, "short": 0.6, "spur": 0.5},
            {},
            "Refused: finds 20 points less of open than version 4 on the same 72 images "
            "(AP50 0.400 against 0.600); at most 10 points less allowed. "
            "Not compared, known to one of the two only: pin, spur.",
        ),
        (
            {"open": 0.2},
            {"open": 0.6},
            {"min_map50": 0.75},
            "Refused: mAP50 is 0.200 on 72 test images, below the 0.750 required. 2 more rules failed.",
        ),
        (
            {"open": 0.8},
            None,
            {"min_map50": 0.75},
            "Passed: the first model of this detector, judged by fixed limits alone; "
            "mAP50 is 0.800 on 72 test images, at least 0.750 required; mAP50-95 is 0.800.",
        ),
        (
            {"spur": 0.8},
            {"open": 0.9},
            {"min_map50": 0.75},
            "Passed: no class in common with version 4, so judged by fixed limits alone; "
            "mAP50 is 0.800 on 72 test images, at least 0.750 required; mAP50-95 is 0.800.",
        ),
        (
            {"open": 0.8},
            None,
            {"min_test_images": 100},
            "Undecided: 72 test images cannot carry a decision; 100 would suffice.",
        ),
        (
            {"open": None, "spur": 0.8},
            {"open": None},
            {},
            "Undecided: no class in common with version 4 occurs in the 72 test images.",
        ),
    ],
)
def test_the_sentence_has_the_numbers(
    candidate: Figures, champion: Figures | None, gate: dict[str, float], sentence: str
) -> None:
    measured_champion, standing = (measured(champion, "champion"), pinned(tuple(champion))) if champion else (None, None)
    assert judge(point(**gate), measured(candidate), measured_champion, standing).sentence == sentence


def test_the_champion_itself_is_not_judged_again() -> None:
    same = measured({"open": 0.6})
    verdict = judge(point(), same, same, pinned(("open",), same.weights_sha256))
    assert verdict.outcome == "same_model" and not verdict.promote
    assert "version 4" in verdict.sentence


def test_a_class_that_does_not_occur_is_listed_as_not_judged_and_never_counts_as_zero() -> None:
    verdict = judge(GateParams(min_class_ap50=0.5), measured({"open": 0.6, "spur": None}), None, None)
    assert verdict.promote
    assert verdict.not_judged == ("spur",)
    assert not any("spur" in check.rule for check in verdict.checks)


def test_every_check_has_its_figure_and_its_limit() -> None:
    gate = point(min_map50=0.1, margin=0.02)
    verdict = judge(
        gate, measured({"open": 0.6, "spur": 0.4}), measured({"open": 0.61, "spur": 0.4}, "champion"), pinned(("open", "spur"))
    )
    table = {check.rule: (check.figure, check.limit) for check in verdict.checks}
    assert table == {
        "test images": (72, 20),
        "mAP50 floor": (0.5, 0.1),
        "mAP50-95 floor": (0.5, 0),
        "AP50 floor: open": (0.6, 0),
        "AP50 floor: spur": (0.4, 0),
        "mAP50-95 drop": (pytest.approx(0.005), 0.02),
        "AP50 drop: open": (pytest.approx(0.01), 0.1),
        "AP50 drop: spur": (0, 0.1),
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset_version": "data-0"}, "differ in dataset_version"),
        ({"num_images": 71}, "differ in num_images"),
        ({"split": "val"}, "differ in split"),
        ({"weights_sha256": "another"}, "run evaluate again"),
    ],
)
def test_a_stored_figure_is_never_held_against_a_fresh_one(changes: dict[str, object], message: str) -> None:
    champion = measured({"open": 0.5}, "champion", **changes)
    with pytest.raises(StageFailed, match=message):
        judge(GateParams(), measured({"open": 0.6}), champion, pinned(("open",)))


def test_the_same_class_must_have_the_same_truth_for_both() -> None:
    with pytest.raises(StageFailed, match="class open has 10 true objects for the candidate and 9 for the champion"):
        judge(GateParams(), measured({"open": 0.6}), measured({"open": 0.5}, "champion", num_truth=9), pinned(("open",)))


def test_a_champion_that_was_not_measured_tonight_is_an_error() -> None:
    with pytest.raises(StageFailed, match="version 4 is champion but was not measured tonight"):
        judge(GateParams(), measured({"open": 0.6}), None, pinned(("open",)))


def test_a_champion_without_a_common_class_need_not_be_measured() -> None:
    assert judge(GateParams(), measured({"spur": 0.6}), None, pinned(("open",))).basis == "no_common_class"


def test_figures_of_a_champion_that_is_not_pinned_are_an_error() -> None:
    with pytest.raises(StageFailed, match="none is pinned"):
        judge(GateParams(), measured({"open": 0.6}), measured({"open": 0.5}, "champion"), None)


def test_the_gate_judges_on_test_only() -> None:
    with pytest.raises(StageFailed, match="measured on val"):
        judge(GateParams(), measured({"open": 0.6}, split="val"), None, None)
