"""The reference stops a slow decline, and the budget makes each night's question harder."""

import pytest

from nightowl.errors import StageFailed
from nightowl.evaluation.budget import Question, Spending
from nightowl.evaluation.gate import judge
from nightowl.evaluation.holdout import Holdout
from nightowl.evaluation.reference import RULE, Reference
from nightowl.evaluation.verdict import Verdict
from nightowl.params import GateParams
from tests.evaluation.test_drops import varying
from tests.evaluation.test_gate import Figures, measured, pinned

QUESTION = Question(candidate="c", champion="d", reference="r", holdout=Holdout(version="t", num_images=72, sketch=("a",)))


def spending(alpha: float, num_before: int = 40) -> Spending:
    return Spending(question=QUESTION, alpha=alpha, num_before=num_before, left=alpha * 20, total=1.0)


def reference(figures: Figures, candidate: Figures, spread: float = 0.005) -> Reference:
    record = pinned(tuple(figures), "reference-weights").model_copy(update={"version": "1"})
    return Reference(record, measured(figures, "reference"), varying(candidate, figures, spread))


def verdict_on(
    ap: float,
    champion: float,
    against: float | None,
    rule: str = "non_inferiority",
    alpha: float | None = None,
    spread: float = 0.005,
) -> Verdict:
    """A candidate of `ap`, a champion, and where it is another one, a reference of `against`."""
    ours, theirs = {"open": ap}, {"open": champion}
    return judge(
        GateParams.model_validate({"rule": rule, "min_map50": 0.0, "max_drop_class_ap50": 1.0}),
        measured(ours),
        measured(theirs, "champion"),
        pinned(("open",)),
        varying(ours, theirs, spread),
        None if alpha is None else spending(alpha),
        None if against is None else reference({"open": against}, ours, spread),
    )


@pytest.mark.parametrize("rule", ["non_inferiority", "point"])
@pytest.mark.parametrize(
    ("ap", "champion", "against", "outcome", "renews", "reason"),
    [
        (0.595, 0.600, None, "promote", False, "within the margin of the champion, which is the reference"),
        (0.650, 0.600, None, "promote", True, "better than the champion, which is the reference"),
        (0.595, 0.600, 0.605, "promote", False, "within the margin of both"),
        (0.595, 0.600, 0.660, "refuse", False, "within the margin tonight, far below where it began"),
        (0.650, 0.600, 0.660, "promote", False, "better than the champion, within the margin of the reference"),
        (0.700, 0.600, 0.660, "promote", True, "better than the reference too"),
        (0.500, 0.600, 0.500, "refuse", False, "as good as the reference, worse than the champion"),
    ],
)
def test_a_candidate_must_hold_against_champion_and_reference(
    rule: str, ap: float, champion: float, against: float | None, outcome: str, renews: bool, reason: str
) -> None:
    verdict = verdict_on(ap, champion, against, rule)
    assert (verdict.outcome, verdict.renews_reference) == (outcome, renews), reason
    assert verdict.reference_version == ("4" if against is None else "1")
    assert [check.rule for check in verdict.checks].count(RULE) == (against is not None)


def test_under_superiority_the_reference_may_still_be_missed_by_the_margin_and_no_more() -> None:
    assert verdict_on(0.65, 0.60, 0.66, "superiority").outcome == "promote"
    refused = verdict_on(0.65, 0.60, 0.70, "superiority")
    assert refused.outcome == "refuse"
    assert "5 points less than version 1, the reference, on the same 72 images" in refused.sentence


def test_a_reference_without_a_common_class_gives_way_to_what_is_promoted() -> None:
    record = pinned(("shut",), "reference-weights")
    ours: Figures = {"open": 0.6}
    against = Reference(record, None, None)
    comparison = varying(ours, ours, 0.005)
    verdict = judge(GateParams(), measured(ours), measured(ours, "champion"), pinned(("open",)), comparison, None, against)
    assert (verdict.outcome, verdict.renews_reference) == ("promote", True)


@pytest.mark.parametrize(
    ("model", "message"), [("other", "measured were weights other-weight"), (None, "not measured tonight")]
)
def test_a_reference_that_was_not_measured_tonight_stops_it(model: str | None, message: str) -> None:
    ours: Figures = {"open": 0.6}
    against = Reference(pinned(("open",), "reference-weights"), measured(ours, model) if model else None, None)
    with pytest.raises(StageFailed, match=message):
        judge(
            GateParams(),
            measured(ours),
            measured(ours, "champion"),
            pinned(("open",)),
            varying(ours, ours, 0.005),
            None,
            against,
        )


@pytest.mark.parametrize(
    ("alpha", "outcome", "reason"),
    [
        (0.05, "promote", "a fresh test set: within 2 points with 95 % confidence"),
        (0.02, "undecided", "the same evidence, asked for more confidence"),
        (1e-12, "undecided", "nothing is left of the budget"),
    ],
)
def test_what_the_budget_leaves_is_the_error_that_tonight_may_make(alpha: float, outcome: str, reason: str) -> None:
    verdict = verdict_on(0.6, 0.6, None, alpha=alpha, spread=0.022)
    assert verdict.outcome == outcome, reason
    assert verdict.spending == spending(alpha)


def test_what_cannot_promote_whatever_is_shown_spends_nothing() -> None:
    ours: Figures = {"open": 0.6}
    comparison = varying(ours, ours, 0.005)
    night = (measured(ours, "champion"), pinned(("open",)), comparison, spending(0.05))
    same = measured(ours).model_copy(update={"weights_sha256": "champion-weights"})
    assert judge(GateParams(), same, *night).spending is None, "the same model"
    assert judge(GateParams(min_test_images=1000), measured(ours), *night).spending is None, "too few images"
    assert judge(GateParams(min_map50=0.9), measured(ours), *night).spending is not None, "refused by a floor, but judged"


def test_an_undecided_night_on_a_used_test_set_says_what_would_help() -> None:
    sentence = verdict_on(0.6, 0.6, None, alpha=0.002, spread=0.03).sentence
    assert "99.8 % confidence" in sentence
    assert "about 450 such images would decide" in sentence
    assert "40 decisions on this test set have left 0.2 % of error for tonight" in sentence
    assert sentence.endswith("replacing at least half of its images starts afresh: 140 images of a new one would decide.")
    assert "replacing" not in verdict_on(0.6, 0.6, None, alpha=0.04, spread=0.03).sentence


def test_a_class_is_protected_as_ever_when_the_budget_is_low() -> None:
    ours: Figures = {"open": 0.45, "short": 0.8}
    theirs: Figures = {"open": 0.6, "short": 0.6}
    comparison = varying(ours, theirs, 0.04)
    checks = [
        judge(GateParams(), measured(ours), measured(theirs, "champion"), pinned(("open", "short")), comparison, each).checks
        for each in (None, spending(1e-9))
    ]
    dropped = [next(check for check in each if check.rule == "AP50 drop: open") for each in checks]
    assert dropped[0] == dropped[1]
    assert not dropped[0].passed
