"""The checks of a candidate against the champion: what it lost, and whether that is shown or may be chance.

By `gate.rule`: `non_inferiority` asks that a loss beyond the margin be ruled out, `superiority` that a gain be shown, `point`
looks at the figures alone. What a class, size or slice may lose is in `part_rules`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from nightowl.errors import StageFailed
from nightowl.evaluation.budget import Spending
from nightowl.evaluation.comparison import Comparison
from nightowl.evaluation.intervals import (
    Interval,
    can_show,
    images_that_suffice,
    interval,
    non_inferior,
    superior,
)
from nightowl.evaluation.metrics import ClassMetrics, Metrics
from nightowl.evaluation.part_rules import Drop
from nightowl.evaluation.part_rules import drop_checks as part_drop_checks
from nightowl.evaluation.parts import Part
from nightowl.evaluation.verdict import Check
from nightowl.evaluation.wording import (
    allowed_in_words,
    budget_in_words,
    drop_in_words,
    nothing_shown_in_words,
    shown_in_words,
    unclear_in_words,
)
from nightowl.params import GateParams

MEAN = "mAP50-95 drop"
_ROUNDING = 1e-9  # 0.51 - 0.50 is a little more than 0.01, and must not break a limit of 0.01


@dataclass(frozen=True)
class Pair:
    """One class that both models know and that occurs in test, with its figures from each."""

    name: str
    candidate: ClassMetrics
    champion: ClassMetrics


@dataclass(frozen=True)
class Ground:
    """What the words of a check need: the version that the candidate is held against and the number of test images."""

    version: str
    num_images: int


def shared(candidate: Metrics, other: Metrics) -> list[Pair]:
    """The classes that both know, in the candidate's order."""
    theirs = {c.name: c for c in other.classes}
    return [Pair(c.name, c, theirs[c.name]) for c in candidate.classes if c.name in theirs]


def pairs_of(candidate: Metrics, other: Metrics | None) -> list[Pair]:
    """Those of them that occur in test."""
    return [pair for pair in (shared(candidate, other) if other else []) if pair.candidate.ap50 is not None]


def drop_checks(
    gate: GateParams,
    pairs: Sequence[Pair],
    comparison: Comparison | None,
    ground: Ground,
    spending: Spending | None = None,
    parts: Sequence[Drop] = (),
) -> list[Check]:
    """The checks against the champion. `figure` is the drop (champion less candidate), `limit` the largest allowed; `parts`
    are what sizes and slices lost.

    The mean is judged at the confidence that `spending` leaves for tonight; a class's loss is shown at the usual one, as it
    can only refuse.

    Raises:
        StageFailed: when the rule asks for a comparison over resamples and there is none.
    """
    if not pairs:
        detail = f"no class in common with version {ground.version} occurs in the {ground.num_images} test images"
        return [Check(rule=MEAN, passed=False, figure=None, limit=mean_limit(gate), detail=detail)]
    drops = [*_class_drops(gate, pairs, comparison, ground), *parts]
    if gate.rule == "point":
        return [point_mean(MEAN, gate, pairs, ground), *part_drop_checks(gate, drops, ground.version)]
    if comparison is None:
        raise StageFailed(f"gate: rule {gate.rule} needs the detections of candidate and champion; run evaluate again")
    better = gate.rule == "superiority"
    mean = resampled_mean(MEAN, gate, pairs, comparison, ground, better=better, spending=spending)
    return [mean, *part_drop_checks(gate, drops, ground.version)]


def mean_limit(gate: GateParams) -> float:
    """How much mAP50-95 a candidate may lose."""
    return 0.0 if gate.rule == "superiority" else gate.margin


def mean_gain(pairs: Sequence[Pair]) -> float:
    """Candidate less the other in mAP50-95."""
    ours, theirs = _means(pairs)
    return ours - theirs


def point_mean(rule: str, gate: GateParams, pairs: Sequence[Pair], ground: Ground) -> Check:
    """The check `rule` of mAP50-95 by the figures alone."""
    ours, theirs = _means(pairs)
    words = drop_in_words("mAP50-95", None, ours, theirs, ground.version, ground.num_images, allowed_in_words(gate.margin))
    return _point(rule, ours, theirs, gate.margin, words)


def _point(rule: str, ours: float, theirs: float, limit: float, detail: str) -> Check:
    passed = theirs - ours <= limit + _ROUNDING
    return Check(rule=rule, passed=passed, figure=theirs - ours, limit=limit, detail=detail)


def resampled_mean(
    rule: str,
    gate: GateParams,
    pairs: Sequence[Pair],
    comparison: Comparison,
    ground: Ground,
    *,
    better: bool,
    spending: Spending | None,
) -> Check:
    """The check `rule` of mAP50-95: that it is `better`, or else that a loss beyond the margin is ruled out."""
    ours, theirs = _means(pairs)
    drawn, number = comparison.of_mean, comparison.num_independent
    confidence = gate.confidence if spending is None else 1 - spending.alpha
    limit = 0.0 if better else gate.margin
    answer = superior(drawn, number, confidence) if better else non_inferior(drawn, number, limit, confidence)
    bounds = _bounds(drawn, number, confidence)
    if bounds is None:
        words = nothing_shown_in_words(number, confidence)
    elif answer == "unknown":
        needed = images_that_suffice(ground.num_images, ours - theirs, bounds, -limit)
        words = unclear_in_words(bounds, None if better else limit, needed, ground.num_images)
    else:
        words = shown_in_words(bounds, None if better else limit, answer == "yes")
    if answer == "unknown" and spending is not None:
        usual = _bounds(drawn, number, gate.confidence)
        fresh = images_that_suffice(ground.num_images, ours - theirs, usual, -limit) if usual else None
        words += budget_in_words(spending, 1 - gate.confidence, fresh)
    return Check(
        rule=rule,
        passed=answer == "yes",
        figure=theirs - ours,
        limit=limit,
        detail=drop_in_words("mAP50-95", None, ours, theirs, ground.version, ground.num_images, words),
        interval=_of_drop(bounds),
        undecided=answer == "unknown",
    )


def _class_drops(gate: GateParams, pairs: Sequence[Pair], comparison: Comparison | None, ground: Ground) -> list[Drop]:
    return [
        Drop(
            Part("class", pair.name),
            _known(pair.candidate.ap50),
            _known(pair.champion.ap50),
            gate.max_drop_class_ap50,
            comparison.of_class[pair.name] if comparison else np.zeros(0),
            comparison.num_independent_of_class[pair.name] if comparison else 0,
            ground.num_images,
        )
        for pair in pairs
    ]


def _bounds(differences: NDArray[np.float64], num_independent: int, confidence: float) -> Interval | None:
    """Their interval, None where so few images cannot show anything."""
    return interval(differences, num_independent, confidence) if can_show(num_independent, confidence) else None


def _of_drop(difference: Interval | None) -> Interval | None:
    """The bounds of champion less candidate."""
    if difference is None:
        return None
    return Interval(low=-difference.high, high=-difference.low, confidence=difference.confidence)


def _means(pairs: Sequence[Pair]) -> tuple[float, float]:
    return fmean(_known(p.candidate.ap50_95) for p in pairs), fmean(_known(p.champion.ap50_95) for p in pairs)


def _known(figure: float | None) -> float:
    assert figure is not None, "a class that occurs in test has figures"
    return figure
