"""Has the data changed its nature since the champion's? The population stability index of two histograms. Pure.

PSI = sum over bins of (p - q) ln(p / q). By convention 0.1 is a small and 0.25 a large shift. With few boxes chance alone makes
it large: under no drift it is about (1/n + 1/m) times a chi-square of B - 1 degrees of freedom (B. Yurdakul, Statistical
Properties of Population Stability Index, 2018), so it must also exceed the 99.9 % quantile of that.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from nightowl.data.figures import SIZE_EDGES, DatasetFigures
from nightowl.records import Record

_Z_999 = 3.0902  # 99.9 % quantile of the normal distribution
_SMOOTHING = 0.5  # added to each bin, so that an empty one has a logarithm


class Drift(Record):
    """One comparison. `psi` is None where it was not judged; `sentence` says what was found, or why nothing was."""

    what: Literal["classes", "box sizes"]
    psi: float | None
    limit: float | None
    drifted: bool
    sentence: str


def judge_drift(before: DatasetFigures | None, now: DatasetFigures, max_psi: float, min_boxes: int) -> tuple[Drift, ...]:
    """Class balance and box sizes of `now` against `before`, the figures of the champion's data."""
    if before is None:
        return tuple(
            _unjudged(what, "there is no champion, so no earlier data to compare with") for what in ("classes", "box sizes")
        )
    if before.dataset_version == now.dataset_version:
        return tuple(_unjudged(what, "the data is the champion's own") for what in ("classes", "box sizes"))
    fewest = min(before.num_boxes, now.num_boxes)
    if fewest < min_boxes:
        said = f"{before.num_boxes} boxes then and {now.num_boxes} now: too few to judge by (at least {min_boxes} each)"
        return tuple(_unjudged(what, said) for what in ("classes", "box sizes"))
    names = tuple(dict.fromkeys((*before.classes, *now.classes)))
    return (
        _judged("classes", names, _by_name(before, names), _by_name(now, names), max_psi),
        _judged("box sizes", _size_names(), before.size_boxes, now.size_boxes, max_psi),
    )


def psi(before: Sequence[int], now: Sequence[int]) -> float:
    """The index of two histograms over the same bins, each count smoothed by a half."""
    total_before, total_now = sum(before) + _SMOOTHING * len(before), sum(now) + _SMOOTHING * len(now)
    shares = [((b + _SMOOTHING) / total_before, (n + _SMOOTHING) / total_now) for b, n in zip(before, now, strict=True)]
    return sum((n - b) * math.log(n / b) for b, n in shares)


def chance_limit(before: Sequence[int], now: Sequence[int]) -> float:
    """What the index stays below in 999 of 1,000 cases without any drift; the chi-square quantile by Wilson and Hilferty."""
    freedom = max(1, sum(b + n > 0 for b, n in zip(before, now, strict=True)) - 1)
    spread = 2 / (9 * freedom)
    quantile = freedom * (1 - spread + _Z_999 * math.sqrt(spread)) ** 3
    return (1 / sum(before) + 1 / sum(now)) * quantile


def _judged(
    what: Literal["classes", "box sizes"], names: Sequence[str], before: Sequence[int], now: Sequence[int], max_psi: float
) -> Drift:
    value, limit = psi(before, now), max(max_psi, chance_limit(before, now))
    shares = [(n / sum(now) - b / sum(before), name, b, n) for name, b, n in zip(names, before, now, strict=True)]
    change, name, was, is_now = max(shares, key=lambda share: (round(abs(share[0]), 9), share[0]))
    moved = f"{name} went from {was / sum(before):.1%} to {is_now / sum(now):.1%} of the boxes" if change else "no share moved"
    sentence = f"PSI {value:.3f}, limit {limit:.3f}; {moved}"
    return Drift(what=what, psi=value, limit=limit, drifted=value > limit, sentence=sentence)


def _unjudged(what: str, sentence: str) -> Drift:
    return Drift.model_validate({"what": what, "psi": None, "limit": None, "drifted": False, "sentence": sentence})


def _by_name(figures: DatasetFigures, names: Sequence[str]) -> list[int]:
    counts = dict(zip(figures.classes, figures.class_boxes, strict=True))
    return [counts.get(name, 0) for name in names]


def _size_names() -> list[str]:
    ends = [f"{edge:.1%}" for edge in SIZE_EDGES]
    return [
        f"sides up to {ends[0]}",
        *(f"sides of {low} to {high}" for low, high in pairwise(ends)),
        f"sides over {ends[-1]}",
    ]
