"""Limits at the operating point, and budgets of time and size."""

import numpy as np
import pytest

from nightowl.evaluation.cost import ArtefactCost, Cost
from nightowl.evaluation.cost_rules import judge_cost
from nightowl.evaluation.evidence import Evidence
from nightowl.evaluation.gate import judge
from nightowl.evaluation.gather import Seen, figures_on_test
from nightowl.evaluation.intervals import Interval
from nightowl.evaluation.operating import ClassThreshold, OperatingPoint
from nightowl.evaluation.operating_figures import Figures, OperatingFigures
from nightowl.evaluation.operating_rules import operating_checks, trials_that_suffice
from nightowl.evaluation.rates import Rate, share_high, share_low, share_p_above
from nightowl.evaluation.truth import truth_of
from nightowl.params import GateParams
from tests.evaluation.scenes import CLASSES, a_scene
from tests.evaluation.test_gate import measured, pinned


def taken_by(name: str, seconds: float, num_bytes: int, required: bool) -> ArtefactCost:
    return ArtefactCost(
        name=name, required=required, seconds_per_image=seconds, p99_seconds_per_image=2 * seconds, num_bytes=num_bytes
    )


def cost(seconds: float, champion: float | None, num_bytes: int, *others: ArtefactCost) -> Cost:
    artefacts = (taken_by("onnx", seconds, num_bytes, True), *others)
    return Cost(artefacts=artefacts, champion_seconds_per_image=champion)


def rate(events: int, trials: int, limit: float | None = None) -> Rate:
    """As counted of independent trials, at 95 %; tested against `limit`."""
    if not trials:
        return Rate(events=0, trials=0, value=None, interval=None)
    bounds = Interval(low=share_low(events, trials, 0.95), high=share_high(events, trials, 0.95), confidence=0.95)
    chance = None if limit is None else share_p_above(events, trials, limit)
    return Rate(events=events, trials=trials, value=events / trials, interval=bounds, p_above=chance)


def figures(miss: Rate | None = None, overkill: Rate | None = None, **miss_of_class: Rate) -> OperatingFigures:
    fine = rate(0, 1000)
    overall = Figures(
        name=None,
        confidence=0.5,
        miss=miss or fine,
        false_positives=fine,
        escape=fine,
        overkill=overkill or fine,
    )
    return OperatingFigures(
        split="test",
        num_images=1000,
        num_independent=1000,
        confidence=0.95,
        overall=overall,
        classes=tuple(overall.model_copy(update={"name": name, "miss": own}) for name, own in miss_of_class.items()),
    )


def class_limits(limit: float, *names: str, limits_on: str = "bound") -> GateParams:
    own = {name: {"max_miss_rate": limit} for name in names}
    return GateParams.model_validate({"class_limits": own, "operating_limits": limits_on})


@pytest.mark.parametrize(
    ("missed", "objects", "limits_on", "passed", "undecided", "detail"),
    [
        (
            0,
            400,
            "bound",
            True,
            False,
            "miss rate is 0 % (0 missed of 400 objects), in truth at most 0.746 % (95 % confidence); at most 1 % allowed",
        ),
        (
            0,
            100,
            "bound",
            False,
            True,
            "miss rate is 0 % (0 missed of 100 objects), in truth at most 2.95 % (95 % confidence); at most 1 % allowed, too "
            "few to tell: about 300 objects would",
        ),
        (
            1,
            200,
            "bound",
            False,
            True,
            "miss rate is 0.5 % (1 missed of 200 objects), in truth at most 2.35 % (95 % confidence); at most 1 % allowed, "
            "too few to tell: about 2800 objects would",
        ),
        (
            50,
            100,
            "bound",
            False,
            False,
            "miss rate is 50 % (50 missed of 100 objects), in truth at least 41.4 % (95 % confidence); at most 1 % allowed",
        ),
        (
            1,
            100,
            "bound",
            False,
            True,
            "miss rate is 1 % (1 missed of 100 objects), in truth at most 4.66 % (95 % confidence); at most 1 % allowed; no "
            "number of objects would show that",
        ),
        (
            0,
            100,
            "point",
            True,
            False,
            "miss rate is 0 % (0 missed of 100 objects), in truth at most 2.95 % (95 % confidence); at most 1 % allowed",
        ),
    ],
)
def test_a_limit_is_kept_broken_or_cannot_be_told(
    missed: int, objects: int, limits_on: str, passed: bool, undecided: bool, detail: str
) -> None:
    gate = GateParams.model_validate({"max_miss_rate": 0.01, "operating_limits": limits_on})
    check = operating_checks(gate, figures(miss=rate(missed, objects)))[0]
    assert (check.rule, check.passed, check.undecided) == ("miss rate", passed, undecided)
    assert check.detail == detail
    assert check.interval is not None and check.figure == missed / objects


def test_a_class_is_held_to_its_own_limits_and_told_by_its_name() -> None:
    measured_rates = figures(open=rate(0, 400, 0.01), spur=rate(50, 100, 0.01))
    kept, broken = operating_checks(class_limits(0.01, "open", "spur"), measured_rates)
    assert (kept.rule, kept.passed) == ("miss rate: open", True)
    assert kept.detail.startswith("miss rate of open is 0 % (0 missed of 400 objects of open), in truth at most 0.746 %")
    assert (broken.rule, broken.passed, broken.undecided) == ("miss rate: spur", False, False)
    assert broken.detail.endswith("at most 1 % allowed, and more is shown (95 % confidence over all 2 limits of classes)")


@pytest.mark.parametrize(
    ("num_classes", "limits_on", "refused", "reason"),
    [
        (1, "bound", True, "alone, 6 of 200 where 1 % is allowed is shown to be more: chance does that 16 times in 1000"),
        (10, "bound", False, "among ten classes one such is no surprise"),
        (10, "point", True, "the figures decide alone"),
    ],
)
def test_what_one_class_shows_is_chance_among_many(num_classes: int, limits_on: str, refused: bool, reason: str) -> None:
    names = [f"class{number}" for number in range(num_classes)]
    rates = dict.fromkeys(names, rate(0, 400, 0.01)) | {names[0]: rate(6, 200, 0.01)}
    first, *others = operating_checks(class_limits(0.01, *names, limits_on=limits_on), figures(**rates))
    assert (first.passed, first.undecided) == (False, not refused), reason
    assert all(check.passed for check in others), reason
    if not refused:
        assert first.detail.endswith("allowed, but among 10 limits of classes that may be chance")


def test_twenty_classes_that_keep_their_limits_are_seldom_refused() -> None:
    """Each at its limit in truth: by its own lower bound alone, some class would refuse more than every fourth night."""
    names, random = [f"class{number}" for number in range(20)], np.random.default_rng(0)
    gate, alone, together = class_limits(0.05, *names), 0, 0
    for _ in range(200):
        counted = {name: rate(int(random.binomial(200, 0.05)), 200, 0.05) for name in names}
        alone += any(one.interval is not None and one.interval.low > 0.05 for one in counted.values())
        together += any(not check.passed and not check.undecided for check in operating_checks(gate, figures(**counted)))
    assert alone > 50 and together <= 14


@pytest.mark.parametrize(
    ("measured_rates", "detail"),
    [
        (
            figures(open=rate(0, 400, 0.1)),
            "miss rate of spur could not be measured: the model has no class spur (gate.class_limits)",
        ),
        (figures(spur=rate(0, 0)), "miss rate of spur could not be measured: test holds no objects of spur"),
        (None, "the candidate has no operating point: it found nothing right on val"),
    ],
)
def test_a_class_that_cannot_be_measured_is_never_taken_for_a_good_one(
    measured_rates: OperatingFigures | None, detail: str
) -> None:
    (check,) = operating_checks(class_limits(0.1, "spur"), measured_rates)
    assert (check.passed, check.figure, check.detail) == (False, None, detail)


@pytest.mark.parametrize(("limits_on", "passed", "undecided"), [("bound", False, True), ("point", True, False)])
def test_few_lots_show_nothing_however_many_images_they_hold(limits_on: str, passed: bool, undecided: bool) -> None:
    few = figures(miss=rate(0, 400), open=rate(0, 400, 0.01)).model_copy(update={"num_independent": 4})
    gate = class_limits(0.01, "open", limits_on=limits_on).model_copy(update={"max_miss_rate": 0.01})
    checks = operating_checks(gate, few)
    assert [(check.passed, check.undecided) for check in checks] == [(passed, undecided)] * 2
    if undecided:
        assert checks[1].detail == (
            "miss rate of open, too few to tell: 4 independent images or lots of images cannot show anything with 95 % "
            "confidence; 5 is the least"
        )


def test_one_false_alarm_in_ten_thousand_takes_thirty_thousand_good_images() -> None:
    check = operating_checks(GateParams(max_overkill_rate=0.0001), figures(overkill=rate(0, 500)))[0]
    assert check.undecided and "about 30000 images without an object would" in check.detail
    assert trials_that_suffice(rate(0, 500), 0.0001) == 29_956


def test_a_number_that_would_suffice_does_suffice() -> None:
    for events, trials, limit in ((0, 50, 0.01), (1, 300, 0.02), (3, 400, 0.03)):
        needed = trials_that_suffice(rate(events, trials), limit)
        assert needed is not None
        assert share_high(round(events / trials * needed), needed, 0.95) <= limit * 1.02


def test_without_limits_in_params_there_are_no_checks() -> None:
    assert operating_checks(GateParams(), figures()) == []
    assert operating_checks(GateParams(), None) == []
    assert judge_cost(GateParams(), cost(1.0, 1.0, 1, taken_by("openvino", 1.0, 1, False)), "4") == ([], {})


def test_a_rate_without_trials_could_not_be_measured() -> None:
    check = operating_checks(GateParams(max_overkill_rate=0.01), figures(overkill=rate(0, 0)))[0]
    assert (check.figure, check.passed) == (None, False)
    assert check.detail == "overkill rate could not be measured: test holds no images without an object"


def test_a_model_without_an_operating_point_keeps_no_limit() -> None:
    check = operating_checks(GateParams(max_miss_rate=1.0), None)[0]
    assert (check.figure, check.passed) == (None, False)
    assert "found nothing right on val" in check.detail


@pytest.mark.parametrize(
    ("limits", "taken", "rule", "figure", "passed", "reason"),
    [
        ({"max_seconds_per_image": 0.05}, cost(0.04, None, 10), "seconds an image", 0.04, True, "fast enough"),
        ({"max_seconds_per_image": 0.05}, cost(0.06, None, 10), "seconds an image", 0.06, False, "too slow"),
        ({"max_seconds_per_image": 0.05}, None, "seconds an image", None, False, "never timed"),
        ({"max_p99_seconds_per_image": 0.1}, cost(0.06, 0.04, 10), "seconds an image, p99", 0.12, False, "the slowest calls"),
        ({"max_latency_ratio": 1.2}, cost(0.06, 0.04, 10), "time against version 4", 1.5, False, "slower by half"),
        ({"max_latency_ratio": 1.2}, cost(0.06, None, 10), "time against version 4", None, False, "champion not timed"),
        ({"max_model_bytes": 9}, cost(0.06, None, 10), "model size", 10, False, "too large"),
        ({"max_model_bytes": 10}, cost(0.06, None, 10), "model size", 10, True, "exactly as large as allowed"),
    ],
)
def test_budgets_of_time_and_size(
    limits: dict[str, float], taken: Cost | None, rule: str, figure: float | None, passed: bool, reason: str
) -> None:
    ((check,), left_out) = judge_cost(GateParams.model_validate(limits), taken, "4")
    assert left_out == {}, "the ONNX never is"
    assert (check.rule, check.passed) == (rule, passed), reason
    assert check.figure == (None if figure is None else pytest.approx(figure)), reason


def test_the_first_model_has_no_champion_to_be_slower_than() -> None:
    assert judge_cost(GateParams(max_latency_ratio=1.0), cost(1.0, None, 1), None) == ([], {})


BUDGETS = {"max_seconds_per_image": 0.05, "max_p99_seconds_per_image": 0.1, "max_latency_ratio": 4.0, "max_model_bytes": 99}


@pytest.mark.parametrize(
    ("other", "failed", "reason"),
    [
        (taken_by("openvino", 0.05, 99, False), [], "as slow and as large as allowed"),
        (taken_by("openvino", 0.051, 99, False), ["seconds an image", "seconds an image, p99"], "too slow"),
        (taken_by("openvino", 0.05, 100, False), ["model size"], "too large"),
    ],
)
@pytest.mark.parametrize("required", [False, True])
def test_another_artefact_that_breaks_a_budget_is_left_out_or_refuses_where_it_is_required(
    other: ArtefactCost, failed: list[str], required: bool, reason: str
) -> None:
    taken = cost(0.03, 0.025, 50, other.model_copy(update={"required": required}))
    gate = GateParams.model_validate({"rule": "point"} | BUDGETS)
    found = judge_cost(gate, taken, "4")
    own = [check for check in found.checks if check.rule.startswith("openvino: ")]
    words = [f"openvino: {rule}" for rule in failed]
    assert [check.rule for check in own if not check.passed] == (words if required else []), reason
    assert len(own) == (0 if failed and not required else 4), "one that ships or has to is on the list, whole"
    assert [why.rpartition(": ")[0] for why in found.left_out.get("openvino", ())] == ([] if required else words), reason
    verdict = judge(gate, measured({"open": 0.8}), None, None, evidence=Evidence(cost=taken))
    assert verdict.outcome == ("refuse" if failed and required else "promote"), reason
    assert bool(verdict.left_out) == bool(failed and not required), reason


def test_a_ratio_is_to_the_onnx_of_the_champion_for_every_artefact() -> None:
    taken = cost(0.04, 0.04, 1, taken_by("openvino", 0.06, 1, False))
    found = judge_cost(GateParams(max_latency_ratio=1.2), taken, "4")
    assert found.left_out == {"openvino": ("openvino: time against version 4: 1.5 times, at most 1.2 times allowed",)}


def test_the_gate_refuses_by_these_rules_and_says_so() -> None:
    evidence = Evidence(operating=figures(miss=rate(50, 100)), cost=cost(0.2, None, 10))
    gate = GateParams(rule="point", max_miss_rate=0.1, max_seconds_per_image=0.1)
    verdict = judge(gate, measured({"open": 0.8}), None, None, evidence=evidence)
    assert verdict.outcome == "refuse"
    assert verdict.sentence.startswith("Refused: the first model of this detector") and "; miss rate is" in verdict.sentence
    assert verdict.sentence.endswith("1 more rule failed.")


@pytest.mark.parametrize(
    ("ours", "theirs", "change", "outcome", "reason"),
    [
        (("open", "spur"), ("open",), "refuse", "refuse", "a new class"),
        (("open",), ("open", "spur"), "refuse", "refuse", "a class less"),
        (("open", "spur"), ("spur", "open"), "refuse", "promote", "the order is no change"),
        (("open", "spur"), ("open",), "compare_common", "promote", "the common ones are compared"),
    ],
)
def test_a_changed_class_list_is_refused_only_where_params_say_so(
    ours: tuple[str, ...], theirs: tuple[str, ...], change: str, outcome: str, reason: str
) -> None:
    gate = GateParams.model_validate({"rule": "point", "class_change": change})
    candidate = measured(dict.fromkeys(ours, 0.8))
    champion = measured(dict.fromkeys([name for name in theirs if name in ours], 0.8), "champion")
    verdict = judge(gate, candidate, champion, pinned(theirs))
    assert verdict.outcome == outcome, reason
    if outcome == "refuse":
        assert "the class list" in verdict.sentence and "spur against version 4" in verdict.sentence


def test_what_is_gathered_for_the_gate_is_tested_against_the_limits_of_each_class() -> None:
    images, detections = a_scene(3, num_images=40, scale=3)
    point = OperatingPoint(
        split="val",
        dataset_version="1" * 64,
        overall=0.5,
        classes=tuple(ClassThreshold(name=name, confidence=None) for name in CLASSES),
    )
    limits = {
        CLASSES[0]: {"max_miss_rate": 0.0, "max_fp_per_image": 50.0},
        CLASSES[1]: {"max_escape_rate": 1.0, "max_overkill_rate": 1.0},
    }
    gate = GateParams.model_validate({"class_limits": limits, "num_resamples": 200})
    checks = operating_checks(gate, figures_on_test(gate, Seen(truth_of(CLASSES, images), detections), point))
    assert {check.rule: check.passed for check in checks} == {
        f"miss rate: {CLASSES[0]}": False,
        f"false positives an image: {CLASSES[0]}": True,
        f"escape rate: {CLASSES[1]}": True,
        f"overkill rate: {CLASSES[1]}": True,
    }
    assert not checks[0].undecided, "where nothing may be missed, one miss is proof"
