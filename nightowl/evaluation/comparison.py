"""How the difference of two models would vary with other images: what the gate needs beyond the figures themselves.

Both models' kept detections are held against the same truth, on the same resamples of the images; no model is run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nightowl.data.split import group_key
from nightowl.errors import DataError
from nightowl.evaluation.bootstrap import compare, draw_weights, group_index
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.matches import Matches, precompute_matches
from nightowl.evaluation.truth import Truth
from nightowl.params import GateParams

_SEED = 0  # the same data give the same verdict


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Candidate less champion, resample by resample, over the classes that both know.

    `of_mean` (R,) of mAP50-95, from `num_independent` images, or groups of them where images of a group are drawn together.
    For each class that occurs, `of_class` of its AP50, over the resamples that hold it, and in how many of them it occurs.
    """

    of_mean: NDArray[np.float64]
    num_independent: int
    of_class: Mapping[str, NDArray[np.float64]]
    num_independent_of_class: Mapping[str, int]


def compare_detections(
    truth: Truth, candidate: Detections, champion: Detections, gate: GateParams, max_detections: int
) -> Comparison:
    """Both models' detections, with the images and classes of `truth`, under `gate.num_resamples` resamples.

    Raises:
        DataError: when `gate.group_pattern` does not match the path of an image.
    """
    groups = groups_of(truth.images, gate.group_pattern)
    ours, theirs = (precompute_matches(truth, each, max_detections) for each in (candidate, champion))
    paired = compare(ours, theirs, draw_weights(groups, gate.num_resamples, _SEED))
    return Comparison(
        paired.of_mean(),
        len(np.unique(groups)),
        {name: paired.of_class_at_50(index) for index, name in enumerate(truth.classes) if truth.counts()[index]},
        _num_independent_of_class(ours, groups),
    )


def groups_of(paths: Sequence[str], pattern: str | None) -> NDArray[np.int64]:
    """The number of the group (I,) of each path, by `gate.group_pattern`. Raises DataError when it does not match one."""
    keys = {path: group_key(path, pattern) for path in paths}
    unmatched = [path for path, key in keys.items() if key is None]
    if unmatched:
        raise DataError(
            f"params gate.group_pattern: {pattern!r} does not match {len(unmatched)} of {len(paths)} test images, first "
            f"{unmatched[0]}; every image needs a group"
        )
    return group_index([str(key) for key in keys.values()])


def _num_independent_of_class(matches: Matches, groups: NDArray[np.int64]) -> dict[str, int]:
    pairs = zip(matches.classes, matches.per_class, strict=True)
    return {name: len(np.unique(groups[one.num_truth > 0])) for name, one in pairs if one.num_truth.any()}
