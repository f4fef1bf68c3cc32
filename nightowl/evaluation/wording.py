"""The gate's findings in words that a line manager understands, with their numbers."""

import math
from collections.abc import Sequence

from nightowl.evaluation.budget import Spending
from nightowl.evaluation.intervals import Interval
from nightowl.evaluation.parts import Part
from nightowl.evaluation.rates import Rate
from nightowl.evaluation.verdict import Basis, Check, Outcome


def sentence_of(outcome: Outcome, basis: Basis, version: str | None, checks: Sequence[Check], not_compared: list[str]) -> str:
    """The verdict in a sentence or two. The first failed check is told in full, further ones are counted."""
    if outcome == "same_model":
        return f"The same model: the candidate's weights are those of version {version}; the champion stands."
    failed = [check for check in checks if not check.passed and not check.undecided]
    if outcome == "undecided":
        unmeasured = [check for check in failed if check.figure is None or check is checks[0]]
        reason = (unmeasured or [check for check in checks if check.undecided])[0]
        return f"Undecided: {reason.detail}."
    opening, told = ("Passed", _told(checks, basis)) if outcome == "promote" else ("Refused", failed[0].detail)
    more = f" {_count(len(failed) - 1, 'more rule')} failed." if len(failed) > 1 else ""
    aside = (
        f" Not compared, known to one of the two only: {', '.join(not_compared)}."
        if basis == "against_champion" and not_compared
        else ""
    )
    return f"{opening}: {_ground(basis, version)}{told}.{more}{aside}"


def floor_in_words(measure: str, name: str | None, figure: float | None, limit: float, passed: bool, images: int) -> str:
    what = measure + (f" of {name}" if name else "")
    if figure is None:
        return f"{what} could not be measured: the {images} test images hold no labelled object"
    digits = 3 if passed or f"{figure:.3f}" != f"{limit:.3f}" else 5
    required = f"at least {limit:.{digits}f} required" if passed else f"below the {limit:.{digits}f} required"
    return f"{what} is {figure:.{digits}f} on {images} test images, {required}"


def drop_in_words(measure: str, name: str | None, ours: float, theirs: float, version: str, images: int, judged: str) -> str:
    """What the candidate lost or gained against the champion, in points, and how that is `judged`."""
    difference = ours - theirs
    change = f"{_points(difference)} {'more' if difference > 0 else 'less'}" if difference else "as much"
    than = "than" if difference else "as"
    what = f" of {name}" if name else ""
    digits = 3 if f"{ours:.3f}" != f"{theirs:.3f}" else 5
    figures = f"{measure} {ours:.{digits}f} against {theirs:.{digits}f}"
    return f"finds {change}{what} {than} version {version} on the same {images} images ({figures}){judged}"


def allowed_in_words(limit: float) -> str:
    return f"; at most {_points(limit)} less allowed"


def shown_in_words(bounds: Interval, limit: float | None, passed: bool) -> str:
    """What is shown of a difference within `bounds`, where `limit` may be lost; None where more must be found."""
    if passed:
        change = f"at least {_points(bounds.low)} more" if bounds.low > 0 else f"at most {_points(bounds.low)} less"
        needless = limit is None or bounds.low > 0
    else:
        change = f"at least {_points(bounds.high)} less" if bounds.high < 0 else "no more"
        needless = False
    return f"; in truth {change} ({_confidence(bounds.confidence)})" + ("" if needless else f", {_required(limit)}")


def unclear_in_words(bounds: Interval, limit: float | None, needed: int | None, images: int) -> str:
    """Why a difference within `bounds` decides nothing, and how many images would (None: no number of them)."""
    if needed is None:
        enough = "no number of images would decide so close a case"
    elif needed > 100 * images:
        enough = f"more than {100 * images} such images would be needed to decide"
    else:
        enough = f"about {_rounded_up(needed)} such images would decide"
    chance = f"it may find up to {_points(bounds.low)} less ({_confidence(bounds.confidence)})"
    return f", too few to tell: in truth {chance}, {_required(limit)}; {enough}"


def budget_in_words(spending: Spending, usual: float, fresh: int | None) -> str:
    """Why tonight asks for more than usual, where past decisions on this test set have spent much; else nothing.

    `usual` is the error allowed on a fresh test set, `fresh` how many images of one would decide (None: no number).
    """
    if spending.alpha >= usual / 2:
        return ""
    spent = f"{_count(spending.num_before, 'decision')} on this test set {'has' if spending.num_before == 1 else 'have'} left"
    would = f": {_rounded_up(fresh)} images of a new one would decide" if fresh is not None and fresh < 1_000_000 else ""
    error = f"{spending.alpha * 100:.2g} %" if spending.alpha > 1e-6 else "next to nothing"
    return f". {spent} {error} of error for tonight; replacing at least half of its images starts afresh{would}"


def nothing_shown_in_words(independent: int, confidence: float) -> str:
    """Why so few images decide nothing, however large the difference."""
    least = math.ceil(-math.log2(1 - confidence) - 1e-9)
    what = (
        f"{_count(independent, 'independent image')} or lots of images" if independent != 1 else "one independent image or lot"
    )
    return f", too few to tell: {what} cannot show anything with {_confidence(confidence)}; {least} is the least"


def class_in_words(limit: float, beyond: str, confidence: float, independent: int) -> str:
    """How a class's drop stands to its limit: `beyond` it is "no", "shown", or may be "chance"."""
    if beyond == "no":
        return allowed_in_words(limit)
    if beyond == "shown":
        return f"{allowed_in_words(limit)}, and more is shown ({_confidence(confidence)} over all parts)"
    count = _count(independent, "independent image")
    return f"{allowed_in_words(limit)}, but that it is more may be chance: it occurs in {count}"


def part_in_words(part: Part) -> tuple[str, str]:
    """The measure taken on a part, and the part's name."""
    if part.kind == "class":
        return "AP50", part.name
    return "mAP50", f"{part.name} objects" if part.kind == "size" else f"slice {part.name}"


def unmeasured_part_in_words(measure: str, name: str, images: int) -> str:
    return f"{measure} of {name} could not be measured: the {images} test images hold none"


def floor_chance_in_words(independent: int, needed: int | None) -> str:
    """That a part below its floor may be there by chance, and how many images holding it would decide."""
    enough = (
        "no number of images would decide so close a case" if needed is None else f"about {_rounded_up(needed)} would decide"
    )
    return f"; that it is less may be chance: it occurs in {_count(independent, 'independent image')}, {enough}"


def rate_in_words(
    what: str,
    rate: Rate,
    events: str,
    trials: str,
    limit: float,
    needed: int | None,
    *,
    share: bool,
    beyond: bool,
    unclear: bool,
    num_limits: int,
) -> str:
    """A rate with its bound against its limit: the lower one where it lies `beyond`.

    `needed` is how many trials would decide where it is unclear; `num_limits` how many the finding had to be shown over.
    """
    assert rate.value is not None and rate.interval is not None
    bound = rate.interval.low if beyond else rate.interval.high
    words = (
        f"{what} is {_rate(rate.value, share)} ({rate.events} {events} of {rate.trials} {trials}), in truth "
        f"{'at least' if beyond else 'at most'} {_rate(bound, share)} ({_confidence(rate.interval.confidence)}); "
        f"at most {_rate(limit, share)} allowed"
    )
    if not unclear:
        shown = f", and more is shown ({_confidence(rate.interval.confidence)} over all {num_limits} limits of classes)"
        return words + (shown if beyond and num_limits > 1 else "")
    if beyond:
        return f"{words}, but among {num_limits} limits of classes that may be chance"
    if needed is None:
        return f"{words}; no number of {trials} would show that"
    return f"{words}, too few to tell: about {_rounded_up(needed)} {trials} would"


def budget_of_cost_in_words(rule: str, figure: float | None, limit: float, unit: str, passed: bool) -> str:
    if figure is None:
        return f"{rule} could not be measured; at most {limit:.4g} {unit} allowed"
    digits = 4 if passed or f"{figure:.4g}" != f"{limit:.4g}" else 9
    return f"{rule}: {figure:.{digits}g} {unit}, at most {limit:.{digits}g} {unit} allowed"


def class_change_in_words(added: list[str], gone: list[str], version: str) -> str:
    """What changed in the class list against the champion's."""
    parts = [f"{verb} {', '.join(names)}" for verb, names in (("adds", added), ("lacks", gone)) if names]
    return f"the class list {' and '.join(parts)} against version {version}, and params refuse that (gate.class_change)"


def _told(checks: Sequence[Check], basis: Basis) -> str:
    """What speaks for a promotion: the comparison where there is one, else the figures themselves."""
    if basis == "against_champion":
        return next(check for check in checks if check.rule == "mAP50-95 drop").detail
    floors = {check.rule: check for check in checks}
    return f"{floors['mAP50 floor'].detail}; mAP50-95 is {floors['mAP50-95 floor'].figure:.3f}"


def _ground(basis: Basis, version: str | None) -> str:
    if basis == "first_model":
        return "the first model of this detector, judged by fixed limits alone; "
    if basis == "no_common_class":
        return f"no class in common with version {version}, so judged by fixed limits alone; "
    return ""


def _points(figure: float) -> str:
    """A difference in points of 0.01, with as many digits as show that it is not zero."""
    value = abs(figure) * 100
    text = f"{value:.2g}" if 0 < value < 0.05 else f"{value:.1f}".removesuffix(".0")
    return f"{text} {'point' if text == '1' else 'points'}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _rate(value: float, share: bool) -> str:
    """A share in per cent, a count as it is, with three digits that mean something."""
    return f"{value * 100:.3g} %" if share else f"{value:.3g}"


def _confidence(confidence: float) -> str:
    return f"{100 - float(f'{(1 - confidence) * 100:.2g}'):.12g} % confidence"


def _required(limit: float | None) -> str:
    return "and it must find more" if limit is None else f"and at most {_points(limit)} less are allowed"


def _rounded_up(number: int) -> int:
    """To two digits: an estimate should not look like a count."""
    step = int("1" + "0" * (len(str(number)) - 2)) if number > 99 else 1
    return math.ceil(number / step) * step
