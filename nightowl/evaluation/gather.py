"""Gathers what the gate may look at from the kept detections: no model is run. Only what params limit is resampled."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nightowl.evaluation.bootstrap import draw_weights
from nightowl.evaluation.comparison import groups_of
from nightowl.evaluation.cost import Cost
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.evidence import Evidence
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.operating_figures import OperatingFigures, operating_figures
from nightowl.evaluation.part_rules import drops_of
from nightowl.evaluation.parts import Kind, Part, PartFigure, Resamples, figures_of_parts
from nightowl.evaluation.slices import Slice
from nightowl.evaluation.truth import Truth
from nightowl.params import GateParams

_SEED = 0  # the same data give the same verdict


class Seen(NamedTuple):
    """Detections with the truth of the same images and classes."""

    truth: Truth
    detections: Detections


class Against(NamedTuple):
    """Candidate and champion over the classes that both know."""

    truth: Truth
    candidate: Detections
    champion: Detections


def gather(
    gate: GateParams,
    candidate: Seen,
    against: Against | None,
    figures: OperatingFigures | None,
    slices: Sequence[Slice],
    max_detections: int,
    cost: Cost | None,
) -> Evidence:
    """The evidence for every rule that params set, by the resamples that the comparison of the means uses too."""
    resamples = _resamples(gate, candidate.truth)
    floors: Mapping[Part, PartFigure] = {}
    if gate.rule != "point":
        floors = figures_of_parts(*candidate, resamples, _with_floors(gate), slices, max_detections)
    kinds = _with_drop_limits(gate, slices)
    if against is None or not kinds:
        return Evidence(floors=floors, operating=figures, cost=cost)
    truth, *models = against
    ours, theirs = (figures_of_parts(truth, model, resamples, kinds, slices, max_detections) for model in models)
    return Evidence(floors=floors, drops=drops_of(gate, ours, theirs), operating=figures, cost=cost)


def figures_on_test(gate: GateParams, candidate: Seen, point: OperatingPoint) -> OperatingFigures | None:
    """What the candidate would do on the line; None when it has no threshold."""
    groups = groups_of(candidate.truth.images, gate.group_pattern)
    limits = gate.class_limits
    return operating_figures(*candidate, point, groups, gate.confidence, gate.num_resamples, class_limits=limits)


def _resamples(gate: GateParams, truth: Truth) -> Resamples:
    groups = groups_of(truth.images, gate.group_pattern)
    return Resamples(draw_weights(groups, 0 if gate.rule == "point" else gate.num_resamples, _SEED), groups)


def _with_floors(gate: GateParams) -> list[Kind]:
    """Kinds of parts with a floor: an absent one cannot be missed."""
    floors: dict[Kind, bool] = {
        "class": gate.min_class_ap50 > 0,
        "size": bool(gate.min_size_map50),
        "slice": bool(gate.min_slice_map50),
    }
    return [kind for kind, some in floors.items() if some]


def _with_drop_limits(gate: GateParams, slices: Sequence[Slice]) -> list[Kind]:
    limits: dict[Kind, bool] = {"size": gate.max_drop_size_map50 is not None, "slice": bool(slices)}
    return [kind for kind, some in limits.items() if some]
