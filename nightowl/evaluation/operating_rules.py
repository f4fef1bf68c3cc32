"""The rules for what a model may do on the line: limits to misses, false positives, escapes and overkill, and to time and size.

A limit on a rate is kept when the upper bound of the rate keeps it, and broken when the lower bound does not; between the two
the images cannot tell, and it is said how many would. Pure.
"""

import math
from dataclasses import dataclass

from nightowl.evaluation.cost import Cost
from nightowl.evaluation.intervals import images_that_suffice
from nightowl.evaluation.operating_figures import OperatingFigures
from nightowl.evaluation.rates import Rate, trials_without_event
from nightowl.evaluation.verdict import Check
from nightowl.evaluation.wording import budget_of_cost_in_words, rate_in_words
from nightowl.params import GateParams

_ROUNDING = 1e-9
_NO_POINT = "the candidate has no operating point: it found nothing right on val"


@dataclass(frozen=True)
class _Limit:
    """A rate with its limit: what is counted, and of what."""

    rule: str
    rate: Rate
    limit: float
    events: str
    trials: str
    share: bool = True


def operating_checks(gate: GateParams, figures: OperatingFigures | None) -> list[Check]:
    """A check for every limit that params set, on the rates of all classes together."""
    if figures is None:
        set_limits = {name: limit for name, limit in _limits_of(gate).items() if limit is not None}
        return [Check(rule=n, passed=False, figure=None, limit=limit, detail=_NO_POINT) for n, limit in set_limits.items()]
    return [_check(gate, one) for one in _limits(gate, figures)]


def cost_checks(gate: GateParams, cost: Cost | None, version: str | None) -> list[Check]:
    """A check for every budget that params set; a ratio to the champion needs one, of version `version`."""
    seconds = cost.seconds_per_image if cost else None
    theirs = cost.champion_seconds_per_image if cost else None
    size = float(cost.model_bytes) if cost else None
    checks = []
    if gate.max_seconds_per_image is not None:
        checks.append(_budget("seconds an image", seconds, gate.max_seconds_per_image, "s"))
    if gate.max_p99_seconds_per_image is not None:
        slowest = cost.p99_seconds_per_image if cost else None
        checks.append(_budget("seconds an image, p99", slowest, gate.max_p99_seconds_per_image, "s"))
    if gate.max_latency_ratio is not None and version is not None:
        ratio = seconds / theirs if seconds is not None and theirs else None
        checks.append(_budget(f"time against version {version}", ratio, gate.max_latency_ratio, "times"))
    if gate.max_model_bytes is not None:
        checks.append(_budget("model size", size, float(gate.max_model_bytes), "bytes"))
    return checks


def _limits_of(gate: GateParams) -> dict[str, float | None]:
    return {
        "miss rate": gate.max_miss_rate,
        "false positives an image": gate.max_fp_per_image,
        "escape rate": gate.max_escape_rate,
        "overkill rate": gate.max_overkill_rate,
    }


def _limits(gate: GateParams, figures: OperatingFigures) -> list[_Limit]:
    of, limits = figures.overall, _limits_of(gate)
    every = (
        ("miss rate", of.miss, "missed", "objects", True),
        ("false positives an image", of.false_positives, "false positives", "images", False),
        ("escape rate", of.escape, "escaped", "images with an object", True),
        ("overkill rate", of.overkill, "rejected", "images without an object", True),
    )
    return [
        _Limit(rule, rate, limit, events, trials, share)
        for rule, rate, events, trials, share in every
        if (limit := limits[rule]) is not None
    ]


def _check(gate: GateParams, one: _Limit) -> Check:
    rate, bounds = one.rate, one.rate.interval
    if rate.value is None or bounds is None:
        detail = f"{one.rule} could not be measured: test holds no {one.trials}"
        return Check(rule=one.rule, passed=False, figure=None, limit=one.limit, detail=detail)
    on_bound = gate.operating_limits == "bound"
    passed = (bounds.high if on_bound else rate.value) <= one.limit + _ROUNDING
    unclear = on_bound and not passed and bounds.low <= one.limit + _ROUNDING
    needed = trials_that_suffice(one.rate, one.limit, one.share) if unclear else None
    detail = rate_in_words(one.rule, rate, one.events, one.trials, one.limit, needed, passed=passed, unclear=unclear)
    return Check(
        rule=one.rule,
        passed=passed,
        figure=rate.value,
        limit=one.limit,
        detail=detail,
        interval=bounds,
        undecided=unclear,
    )


def trials_that_suffice(rate: Rate, limit: float, share: bool = True) -> int | None:
    """About how many trials would show that a rate like this keeps its limit, or breaks it; None when no number would.

    At least as many as would show it without a single event: ln(1 - confidence) / ln(1 - limit), three by the limit at 95 %.
    """
    assert rate.value is not None and rate.interval is not None
    confidence = rate.interval.confidence
    least = trials_without_event(limit, confidence) if share else _images_without_event(limit, confidence)
    if rate.value > limit:
        return images_that_suffice(rate.trials, rate.value, rate.interval, limit)
    more = images_that_suffice(rate.trials, rate.value, rate.interval, limit) if rate.events else rate.trials
    return None if least is None or more is None else max(least, more)


def _images_without_event(limit: float, confidence: float) -> int | None:
    return None if limit <= 0 else math.ceil(-math.log(1 - confidence) / limit)


def _budget(rule: str, figure: float | None, limit: float, unit: str) -> Check:
    passed = figure is not None and figure <= limit
    detail = budget_of_cost_in_words(rule, figure, limit, unit, passed)
    return Check(rule=rule, passed=passed, figure=figure, limit=limit, detail=detail)
