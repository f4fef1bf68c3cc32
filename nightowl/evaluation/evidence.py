"""What the gate may look at beyond metrics and comparison: parts of the test set, the operating point, time and size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nightowl.evaluation.cost import Cost
from nightowl.evaluation.operating_figures import OperatingFigures
from nightowl.evaluation.part_rules import Drop
from nightowl.evaluation.parts import Part, PartFigure


@dataclass(frozen=True, eq=False)
class Evidence:
    """`floors`: the candidate's parts, over all its classes. `drops`: what sizes and slices lost, over the common classes.
    `operating` is None for a model without a threshold, `cost` where the export was not timed."""

    floors: Mapping[Part, PartFigure] = field(default_factory=dict)
    drops: Sequence[Drop] = ()
    operating: OperatingFigures | None = None
    cost: Cost | None = None
