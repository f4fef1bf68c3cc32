"""The rules for what a model may do on the line: limits to misses, false positives, escapes and overkill, overall and a class.

A limit on a rate is kept when the upper bound of the rate keeps it, and broken when the lower bound does not; between the two
the images cannot tell, and it is said how many would. Limits of classes are many: one is broken when that is shown over all of
them together (Holm), so that twenty classes do not refuse a good model by chance. Passing needs no such correction: every
limit must be shown to be kept, and a class that breaks its own is let through with 1 - confidence at most. Pure.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nightowl.evaluation.intervals import can_show, holm, images_that_suffice
from nightowl.evaluation.operating_figures import Figures, OperatingFigures
from nightowl.evaluation.rates import Rate, trials_without_event
from nightowl.evaluation.verdict import Check
from nightowl.evaluation.wording import nothing_shown_in_words, rate_in_words
from nightowl.params import GateParams, OperatingLimits

_ROUNDING = 1e-9
_NO_POINT = "the candidate has no operating point: it found nothing right on val"


@dataclass(frozen=True)
class _Kind:
    """A rate that may be limited: what is counted, and of what."""

    rule: str
    limit: Callable[[OperatingLimits], float | None]
    rate: Callable[[Figures], Rate]
    events: str
    trials: str
    share: bool = True


@dataclass(frozen=True)
class _Limit:
    """A kind of rate with its limit, of all classes or of `name`; `rate` is None where there is no such class."""

    kind: _Kind
    name: str | None
    rate: Rate | None
    limit: float

    @property
    def rule(self) -> str:
        return self.kind.rule + (f": {self.name}" if self.name else "")


_KINDS = (
    _Kind("miss rate", lambda of: of.max_miss_rate, lambda of: of.miss, "missed", "objects"),
    _Kind(
        "false positives an image",
        lambda of: of.max_fp_per_image,
        lambda of: of.false_positives,
        "false positives",
        "images",
        share=False,
    ),
    _Kind("escape rate", lambda of: of.max_escape_rate, lambda of: of.escape, "escaped", "images with an object"),
    _Kind("overkill rate", lambda of: of.max_overkill_rate, lambda of: of.overkill, "rejected", "images without an object"),
)


def operating_checks(gate: GateParams, figures: OperatingFigures | None) -> list[Check]:
    """A check for every limit that params set: on the rates of all classes together, then on those of single classes."""
    limits = [*_limits(gate, None, figures.overall if figures else None)]
    own = {each.name: each for each in figures.classes} if figures else {}
    for name, of_class in gate.class_limits.items():
        limits += _limits(of_class, name, own.get(name))
    if figures is None:
        return [Check(rule=one.rule, passed=False, figure=None, limit=one.limit, detail=_NO_POINT) for one in limits]
    tested = [one for one in limits if one.name is not None and one.rate is not None and one.rate.value is not None]
    sure = holm([_p_above(one) for one in tested], 1 - gate.confidence)
    shown = {one.rule for one, certain in zip(tested, sure, strict=True) if certain}
    if gate.operating_limits == "bound" and not can_show(figures.num_independent, gate.confidence):
        return [_too_few(one, figures.num_independent, gate.confidence) for one in limits]
    return [_check(gate, one, one.rule in shown, len(tested)) for one in limits]


def _limits(of: OperatingLimits, name: str | None, figures: Figures | None) -> Iterator[_Limit]:
    for kind in _KINDS:
        limit = kind.limit(of)
        if limit is not None:
            yield _Limit(kind, name, kind.rate(figures) if figures else None, limit)


def _p_above(one: _Limit) -> float:
    assert one.rate is not None and one.rate.p_above is not None, "the figures were made for these limits"
    return one.rate.p_above


def _too_few(one: _Limit, num_independent: int, confidence: float) -> Check:
    """So few images, or lots of them, show no limit to be kept or broken, whatever they hold."""
    if one.rate is None or one.rate.value is None:
        return Check(rule=one.rule, passed=False, figure=None, limit=one.limit, detail=_unmeasured(one))
    return Check(
        rule=one.rule,
        passed=False,
        figure=one.rate.value,
        limit=one.limit,
        detail=_what(one) + nothing_shown_in_words(num_independent, confidence),
        interval=one.rate.interval,
        undecided=True,
    )


def _check(gate: GateParams, one: _Limit, shown_over_all: bool, num_tested: int) -> Check:
    rate = one.rate
    if rate is None or rate.value is None or rate.interval is None:
        return Check(rule=one.rule, passed=False, figure=None, limit=one.limit, detail=_unmeasured(one))
    on_bound, bounds = gate.operating_limits == "bound", rate.interval
    passed = (bounds.high if on_bound else rate.value) <= one.limit + _ROUNDING
    beyond = bounds.low > one.limit + _ROUNDING
    broken = not on_bound or (beyond if one.name is None or num_tested == 1 else shown_over_all)
    unclear = not passed and not broken
    needed = trials_that_suffice(rate, one.limit, one.kind.share) if unclear and not beyond else None
    return Check(
        rule=one.rule,
        passed=passed,
        figure=rate.value,
        limit=one.limit,
        detail=rate_in_words(
            _what(one),
            rate,
            one.kind.events,
            _trials(one),
            one.limit,
            needed,
            share=one.kind.share,
            beyond=not passed and (beyond or broken),
            unclear=unclear,
            num_limits=num_tested if one.name is not None and on_bound else 1,
        ),
        interval=bounds,
        undecided=unclear,
    )


def _what(one: _Limit) -> str:
    return one.kind.rule + (f" of {one.name}" if one.name is not None else "")


def _trials(one: _Limit) -> str:
    return one.kind.trials + (f" of {one.name}" if one.name is not None and one.kind.share else "")


def _unmeasured(one: _Limit) -> str:
    if one.rate is None:
        return f"{one.kind.rule} of {one.name} could not be measured: the model has no class {one.name} (gate.class_limits)"
    return f"{_what(one)} could not be measured: test holds no {_trials(one)}"


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
