"""Against the champion: shown, shown not to be, or too little data; and how that is said."""

import numpy as np
import pytest

from nightowl.errors import StageFailed
from nightowl.evaluation.comparison import Comparison
from nightowl.evaluation.gate import judge
from nightowl.evaluation.verdict import Verdict
from nightowl.params import GateParams
from tests.evaluation.test_gate import Figures, measured, pinned

MANY = 1_000_000  # independent images, so that no bound is widened for their number


def varying(candidate: Figures, champion: Figures, spread: float, num_independent: int = 60, overall: int = MANY) -> Comparison:
    """Differences spread evenly about those of the figures, from - spread to + spread."""
    ours = {name: value for name, value in candidate.items() if value is not None and name in champion}
    noise = np.linspace(-spread, spread, 1001)
    drop = {name: value - (champion[name] or 0) for name, value in ours.items()}
    of_class = {name: value + noise for name, value in drop.items()}
    return Comparison(np.mean(list(drop.values())) + noise, overall, of_class, dict.fromkeys(ours, num_independent))


def verdict_on(candidate: Figures, champion: Figures, spread: float, independent: int = 60, **gate: object) -> Verdict:
    comparison = varying(candidate, champion, spread, independent)
    params = GateParams.model_validate(gate)
    return judge(params, measured(candidate), measured(champion, "champion"), pinned(tuple(champion)), comparison)


@pytest.mark.parametrize(
    ("rule", "gain", "spread", "outcome", "reason"),
    [
        ("non_inferiority", 0.00, 0.02, "promote", "as good, and a loss beyond 2 points ruled out"),
        ("non_inferiority", -0.01, 0.005, "promote", "a little worse, surely within the margin"),
        ("non_inferiority", 0.00, 0.05, "undecided", "as good, but the images cannot rule out a loss of 2 points"),
        ("non_inferiority", -0.03, 0.05, "undecided", "looks worse, but may be chance"),
        ("non_inferiority", -0.05, 0.02, "refuse", "a loss beyond the margin is shown"),
        ("superiority", 0.03, 0.02, "promote", "a gain is shown"),
        ("superiority", 0.01, 0.02, "undecided", "looks better, but may be chance"),
        ("superiority", -0.03, 0.02, "refuse", "a loss is shown"),
        ("superiority", 0.00, 0.00, "refuse", "exactly as good is not better"),
        ("point", 0.00, 0.05, "promote", "the figures alone, whatever the noise"),
        ("point", -0.03, 0.05, "refuse", "the figures alone, whatever the noise"),
    ],
)
def test_a_rule_promotes_refuses_or_leaves_undecided(rule: str, gain: float, spread: float, outcome: str, reason: str) -> None:
    verdict = verdict_on({"open": 0.6 + gain}, {"open": 0.6}, spread, rule=rule)
    assert verdict.outcome == outcome, reason


CHAMPION: Figures = {"open": 0.6}


@pytest.mark.parametrize(
    ("candidate", "spread", "rule", "sentence"),
    [
        (
            {"open": 0.61},
            0.02,
            "non_inferiority",
            "Passed: finds 1 point more than version 4 on the same 72 images (mAP50-95 0.610 against 0.600); in truth at "
            "most 0.8 points less (95 % confidence), and at most 2 points less are allowed.",
        ),
        (
            {"open": 0.63},
            0.02,
            "non_inferiority",
            "Passed: finds 3 points more than version 4 on the same 72 images (mAP50-95 0.630 against 0.600); in truth "
            "at least 1.2 points more (95 % confidence).",
        ),
        (
            {"open": 0.55},
            0.02,
            "non_inferiority",
            "Refused: finds 5 points less than version 4 on the same 72 images (mAP50-95 0.550 against 0.600); in truth at "
            "least 3.2 points less (95 % confidence), and at most 2 points less are allowed.",
        ),
        (
            {"open": 0.6},
            0.05,
            "non_inferiority",
            "Undecided: finds as much as version 4 on the same 72 images (mAP50-95 0.60000 against 0.60000), too few to "
            "tell: in truth it may find up to 4.5 points less (95 % confidence), and at most 2 points less are allowed; "
            "about 370 such images would decide.",
        ),
        (
            {"open": 0.601},
            0.05,
            "superiority",
            "Undecided: finds 0.1 points more than version 4 on the same 72 images (mAP50-95 0.601 against 0.600), too few "
            "to tell: in truth it may find up to 4.4 points less (95 % confidence), and it must find more; more than 7200 "
            "such images would be needed to decide.",
        ),
        (
            {"open": 0.57},
            0.02,
            "superiority",
            "Refused: finds 3 points less than version 4 on the same 72 images (mAP50-95 0.570 against 0.600); in truth at "
            "least 1.2 points less (95 % confidence), and it must find more.",
        ),
    ],
)
def test_the_sentence_says_what_is_shown(candidate: Figures, spread: float, rule: str, sentence: str) -> None:
    assert verdict_on(candidate, CHAMPION, spread, rule=rule).sentence == sentence


def test_the_check_bounds_the_drop_and_not_the_gain() -> None:
    check = next(c for c in verdict_on({"open": 0.61}, CHAMPION, 0.02).checks if c.rule == "mAP50-95 drop")
    assert check.interval is not None
    assert check.figure == pytest.approx(-0.01) and check.limit == 0.02
    assert (check.interval.low, check.interval.high) == (pytest.approx(-0.028, abs=1e-6), pytest.approx(0.008, abs=1e-6))
    assert check.interval.confidence == 0.95 and not check.undecided


def test_a_check_that_may_be_chance_is_neither_passed_nor_failed() -> None:
    check = next(c for c in verdict_on({"open": 0.6}, CHAMPION, 0.05).checks if c.rule == "mAP50-95 drop")
    assert check.undecided and not check.passed


@pytest.mark.parametrize(
    ("lost", "spread", "independent", "refused", "told", "reason"),
    [
        (0.05, 0.02, 60, False, "at most 10 points less allowed", "within the limit"),
        (0.30, 0.05, 60, True, "and more is shown (95 % confidence over all parts)", "far beyond it, on many images"),
        (0.15, 0.30, 60, False, "may be chance: it occurs in 60 independent images", "beyond it, within the noise"),
        (0.30, 0.05, 3, False, "may be chance: it occurs in 3 independent images", "far beyond it, on three images"),
    ],
)
def test_a_class_refuses_only_when_its_loss_is_shown(
    lost: float, spread: float, independent: int, refused: bool, told: str, reason: str
) -> None:
    candidate: Figures = {"open": 0.9 - lost, "short": 0.6 + lost}
    verdict = verdict_on(candidate, {"open": 0.9, "short": 0.6}, spread, independent, margin=0.5)
    check = next(c for c in verdict.checks if c.rule == "AP50 drop: open")
    assert check.passed is not refused, reason
    assert told in check.detail
    assert verdict.outcome == ("refuse" if refused else "promote")


def test_what_is_shown_to_fail_refuses_though_something_else_is_undecided() -> None:
    candidate: Figures = {"open": 0.5, "short": 0.9}
    verdict = verdict_on(candidate, {"open": 0.9, "short": 0.6}, 0.15, margin=0.0)
    assert verdict.outcome == "refuse"
    assert verdict.sentence.startswith("Refused: finds 40 points less of open than version 4")
    assert "more rule" not in verdict.sentence, "what is undecided did not fail"


@pytest.mark.parametrize("rule", ["non_inferiority", "superiority"])
def test_a_rule_over_resamples_without_detections_is_an_error(rule: str) -> None:
    gate = GateParams.model_validate({"rule": rule})
    with pytest.raises(StageFailed, match="needs the detections of candidate and champion"):
        judge(gate, measured({"open": 0.6}), measured(CHAMPION, "champion"), pinned(("open",)))


def test_four_lots_decide_nothing_however_clear_the_gain() -> None:
    candidate: Figures = {"open": 0.9}
    comparison = varying(candidate, CHAMPION, 0.01, num_independent=4, overall=4)
    verdict = judge(GateParams(), measured(candidate), measured(CHAMPION, "champion"), pinned(("open",)), comparison)
    assert verdict.outcome == "undecided"
    assert (
        "4 independent images or lots of images cannot show anything with 95 % confidence; 5 is the least" in verdict.sentence
    )
    assert all(check.interval is None for check in verdict.checks)
