"""The rules for parts of the test set: each class, size of object and slice has a floor, and a limit to what it may lose.

Where images were resampled, a part fails when that is shown, with a correction over all parts of the rule (Holm), so that
eighty classes and ten lots do not refuse a good model by chance. A part below its floor for which it is not shown leaves the
verdict undecided; by the rule `point` the figures decide alone. Pure.

R resamples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.intervals import Interval, can_show, holm, images_that_suffice, interval, p_value
from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.parts import Part, PartFigure, differences
from nightowl.evaluation.verdict import Check
from nightowl.evaluation.wording import (
    allowed_in_words,
    class_in_words,
    drop_in_words,
    floor_chance_in_words,
    floor_in_words,
    part_in_words,
    unmeasured_part_in_words,
)
from nightowl.params import GateParams

_ROUNDING = 1e-9  # 0.51 - 0.50 is a little more than 0.01, and must not break a limit of 0.01

Parts = Mapping[Part, PartFigure]


@dataclass(frozen=True, eq=False)
class Drop:
    """What one part lost: figures of both, their differences (R,) over `num_independent` images, and what may be lost."""

    part: Part
    ours: float
    theirs: float
    limit: float
    differences: NDArray[np.float64]
    num_independent: int
    num_images: int


@dataclass(frozen=True)
class _Floor:
    part: Part
    figure: float | None
    limit: float
    drawn: PartFigure | None


def floor_checks(gate: GateParams, candidate: Metrics, drawn: Parts) -> list[Check]:
    """A check for every part that has a floor. A class that does not occur in test gets none; a size or a slice that params
    name and that is not there could not be measured."""
    floors = [*_class_floors(gate, candidate, drawn), *_named_floors(gate, candidate, drawn)]
    shown = holm([_below_by_chance(each) for each in floors], 1 - gate.confidence)
    return [_floor_check(each, sure, gate, candidate.num_images) for each, sure in zip(floors, shown, strict=True)]


def drops_of(gate: GateParams, ours: Parts, theirs: Parts) -> list[Drop]:
    """What each size and slice lost, of those that both were measured on and that have a limit."""
    limits = {"size": gate.max_drop_size_map50, "slice": gate.max_drop_slice_map50, "class": None}
    return [
        Drop(part, own.figure, theirs[part].figure, limit, differences(own, theirs[part]), own.num_independent, own.num_images)
        for part, own in ours.items()
        if part in theirs and (limit := limits[part.kind]) is not None
    ]


def drop_checks(gate: GateParams, drops: Sequence[Drop], version: str) -> list[Check]:
    """A check for each part that may have lost; `figure` is the drop."""
    if gate.rule == "point":
        shown: Sequence[bool] = [True] * len(drops)
    else:
        shown = holm([p_value(d.differences, d.num_independent, -d.limit) for d in drops], 1 - gate.confidence)
    return [_drop_check(drop, sure, gate, version) for drop, sure in zip(drops, shown, strict=True)]


def _class_floors(gate: GateParams, candidate: Metrics, drawn: Parts) -> list[_Floor]:
    occurring = [(Part("class", c.name), c.ap50) for c in candidate.classes if c.ap50 is not None]
    return [_Floor(part, figure, gate.min_class_ap50, drawn.get(part)) for part, figure in occurring]


def _named_floors(gate: GateParams, candidate: Metrics, drawn: Parts) -> list[_Floor]:
    sizes = {one.size: one.ap50 for one in candidate.sizes}
    slices = {one.name: one.map50 for one in candidate.slices}
    floors = [(Part("size", name), sizes.get(name), limit) for name, limit in gate.min_size_map50.items()]
    floors += [(Part("slice", name), slices.get(name), limit) for name, limit in gate.min_slice_map50.items()]
    return [_Floor(part, figure, limit, drawn.get(part)) for part, figure, limit in floors]


def _below_by_chance(floor: _Floor) -> float:
    """The probability of a figure so far below the floor were the truth at it; zero where nothing was resampled."""
    if floor.figure is None or floor.figure >= floor.limit - _ROUNDING:
        return 1.0
    known = _known(floor.drawn)
    return 0.0 if floor.drawn is None or not len(known) else p_value(known, floor.drawn.num_independent, floor.limit)


def _floor_check(floor: _Floor, shown: bool, gate: GateParams, num_images: int) -> Check:
    measure, name = part_in_words(floor.part)
    rule = f"{measure} floor: {name}"
    if floor.figure is None:
        detail = unmeasured_part_in_words(measure, name, num_images)
        return Check(rule=rule, passed=False, figure=None, limit=floor.limit, detail=detail)
    passed = floor.figure >= floor.limit - _ROUNDING
    words = floor_in_words(measure, name, floor.figure, floor.limit, passed, num_images)
    unclear = not passed and not shown
    bounds = None if floor.drawn is None else _bounds(_known(floor.drawn), floor.drawn.num_independent, gate.confidence)
    if unclear and floor.drawn is not None:
        needed = images_that_suffice(floor.drawn.num_images, floor.figure, bounds, floor.limit) if bounds else None
        words += floor_chance_in_words(floor.drawn.num_independent, needed)
    return Check(
        rule=rule, passed=passed, figure=floor.figure, limit=floor.limit, detail=words, interval=bounds, undecided=unclear
    )


def _drop_check(drop: Drop, shown: bool, gate: GateParams, version: str) -> Check:
    measure, name = part_in_words(drop.part)
    lost = drop.theirs - drop.ours
    beyond = lost > drop.limit + _ROUNDING
    failed = shown and beyond
    if gate.rule == "point":
        words, bounds = allowed_in_words(drop.limit), None
    else:
        found = "shown" if failed else "chance" if beyond else "no"
        words = class_in_words(drop.limit, found, gate.confidence, drop.num_independent)
        bounds = _bounds(-drop.differences, drop.num_independent, gate.confidence)
    return Check(
        rule=f"{measure} drop: {name}",
        passed=not failed,
        figure=lost,
        limit=drop.limit,
        detail=drop_in_words(measure, name, drop.ours, drop.theirs, version, drop.num_images, words),
        interval=bounds,
    )


def _known(part: PartFigure | None) -> NDArray[np.float64]:
    return np.zeros(0) if part is None else part.drawn[~np.isnan(part.drawn)]


def _bounds(drawn: NDArray[np.float64], num_independent: int, confidence: float) -> Interval | None:
    """Their interval, None where so few images cannot show anything."""
    return interval(drawn, num_independent, confidence) if len(drawn) and can_show(num_independent, confidence) else None
