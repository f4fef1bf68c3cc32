"""How a model does on parts of the test set (each class, each size of object, each slice), and how that varies with the images.

Everything at IoU 0.5: AP50 of a class, mAP50 over the classes that occur in a size or slice. From matches that are made once
and weighted by the same resamples for every model, so that two models can be subtracted resample by resample.

R resamples, I images, C classes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.bootstrap import Weights, weighted_average_precision
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.matches import Matches, precompute_matches
from nightowl.evaluation.sizes import AREAS, SIZES
from nightowl.evaluation.slices import Slice, members
from nightowl.evaluation.truth import Truth

Kind = Literal["class", "size", "slice"]


class Part(NamedTuple):
    """A part of the test set."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class PartFigure:
    """A model's figure on a part, and in each resample (R,), NaN where that holds no object of it; the number of images, and of
    groups of them, in which the part occurs."""

    figure: float
    drawn: NDArray[np.float64]
    num_images: int
    num_independent: int


class Resamples(NamedTuple):
    """`weights` (R, I) of the images, and the number of the group (I,) that each belongs to."""

    weights: Weights
    groups: NDArray[np.int64]


def figures_of_parts(
    truth: Truth,
    detections: Detections,
    resamples: Resamples,
    kinds: Sequence[Kind],
    slices: Sequence[Slice],
    max_detections: int,
) -> Mapping[Part, PartFigure]:
    """The figure of every part of these kinds that holds an object."""
    found: dict[Part, PartFigure] = {}
    whole = _at_half(precompute_matches(truth, detections, max_detections)) if {"class", "slice"} & set(kinds) else None
    if whole is not None and "class" in kinds:
        found |= dict(_classes(whole, resamples))
    if "size" in kinds:
        for size in SIZES:
            matches = _at_half(precompute_matches(truth, detections, max_detections, AREAS[size]))
            found |= _one(Part("size", size), matches, resamples)
    if whole is not None and "slice" in kinds:
        for each in slices:
            found |= _one(Part("slice", each.name), _inside(whole, members(truth.images, each)), resamples)
    return found


def differences(ours: PartFigure, theirs: PartFigure) -> NDArray[np.float64]:
    """Ours less theirs in every resample that holds an object of the part."""
    drawn = ours.drawn - theirs.drawn
    return drawn[~np.isnan(drawn)]


def _classes(matches: Matches, resamples: Resamples) -> Iterator[tuple[Part, PartFigure]]:
    figure, drawn = _average(matches, resamples)
    for index, one in enumerate(matches.per_class):
        if one.num_truth.any():
            part = Part("class", matches.classes[index])
            yield part, _figure(figure[index], drawn[:, index], one.num_truth > 0, resamples)


def _one(part: Part, matches: Matches, resamples: Resamples) -> dict[Part, PartFigure]:
    """The mean over the classes that occur; nothing where none does."""
    holds = np.any([one.num_truth > 0 for one in matches.per_class], axis=0)
    if not holds.any():
        return {}
    figure, drawn = _average(matches, resamples)
    return {part: _figure(_mean(figure[None])[0], _mean(drawn), holds, resamples)}


def _figure(figure: np.floating, drawn: NDArray[np.float64], holds: NDArray[np.bool_], resamples: Resamples) -> PartFigure:
    return PartFigure(float(figure), drawn, int(holds.sum()), len(np.unique(resamples.groups[holds])))


def _average(matches: Matches, resamples: Resamples) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """AP50 (C,) of the images as they are, and (R, C) of the resamples."""
    once = np.ones((1, len(matches.images)), np.int32)
    return weighted_average_precision(matches, once)[0, 0], weighted_average_precision(matches, resamples.weights)[:, 0]


def _mean(per_class: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean (R,) of what is known in each row (R, C); NaN where nothing is."""
    known = ~np.isnan(per_class)
    number = known.sum(axis=1)
    total = np.where(known, per_class, 0.0).sum(axis=1)
    mean: NDArray[np.float64] = np.divide(total, number, out=np.full(len(total), np.nan), where=number > 0)
    return mean


def _at_half(matches: Matches) -> Matches:
    """The matches at the first IoU threshold, 0.5, alone: a tenth of the work."""
    per_class = tuple(replace(one, found=one.found[:1], ignored=one.ignored[:1]) for one in matches.per_class)
    return replace(matches, per_class=per_class)


def _inside(matches: Matches, inside: NDArray[np.bool_]) -> Matches:
    """The matches on the images (I,) that are inside; the list of images stays, so that resamples fit."""
    per_class = []
    for one in matches.per_class:
        rows = inside[one.image_index]
        per_class.append(
            replace(
                one,
                image_index=one.image_index[rows],
                score=one.score[rows],
                found=one.found[:, rows],
                ignored=one.ignored[:, rows],
                num_truth=np.where(inside, one.num_truth, 0).astype(np.int32),
            )
        )
    return replace(matches, per_class=tuple(per_class))
