"""Figures on parts of the images, from matches that were made once: no slice is evaluated again."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.bootstrap import weighted_average_precision
from nightowl.evaluation.matches import Matches
from nightowl.evaluation.metrics import SliceClass, SliceMetrics
from nightowl.evaluation.slices import Slice, members


def slice_metrics(matches: Matches, slices: Sequence[Slice]) -> tuple[SliceMetrics, ...]:
    """Average precision on each slice, equal to evaluating its images alone; None where it holds no object of a class."""
    if not slices:
        return ()
    inside = np.stack([members(matches.images, one) for one in slices])
    average = weighted_average_precision(matches, inside.astype(np.int32))
    return tuple(_one(matches, one, *each) for one, *each in zip(slices, inside, average, strict=True))


def _one(matches: Matches, one: Slice, inside: NDArray[np.bool_], average: NDArray[np.float64]) -> SliceMetrics:
    """Of average precision (T, C)."""
    counts = [int(each.num_truth[inside].sum()) for each in matches.per_class]
    ap50, ap50_95 = average[0], average.mean(axis=0)
    classes = zip(matches.classes, counts, ap50, ap50_95, strict=True)
    return SliceMetrics(
        name=one.name,
        num_images=int(inside.sum()),
        num_truth=sum(counts),
        map50=_unit(_mean(ap50)),
        map50_95=_unit(_mean(ap50_95)),
        classes=tuple(SliceClass(name=n, num_truth=c, ap50=_unit(a), ap50_95=_unit(b)) for n, c, a, b in classes),
    )


def _mean(per_class: NDArray[np.float64]) -> np.floating:
    known = per_class[~np.isnan(per_class)]
    return known.mean() if len(known) else np.float64(np.nan)


def _unit(value: np.floating) -> float | None:
    return None if np.isnan(value) else float(np.clip(value, 0, 1))
