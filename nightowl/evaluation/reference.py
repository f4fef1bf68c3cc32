"""The reference: a version that stays until something better is shown, so that steps within the margin add up to no decline.

Every candidate is held against it as against the champion, measured tonight on the same images; never more than the margin may
be lost, whatever the rule against the champion. Pure.
"""

from dataclasses import dataclass

from nightowl.errors import StageFailed
from nightowl.evaluation.budget import Spending
from nightowl.evaluation.champion import ChampionRecord
from nightowl.evaluation.comparison import Comparison
from nightowl.evaluation.drops import Ground, mean_gain, pairs_of, point_mean, resampled_mean
from nightowl.evaluation.intervals import superior
from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.verdict import Check
from nightowl.params import GateParams

RULE = "mAP50-95 drop to the reference"


@dataclass(frozen=True)
class Reference:
    """The pinned reference, what was measured of it tonight (None without a common class), and how the difference varies."""

    record: ChampionRecord
    measured: Metrics | None
    comparison: Comparison | None


def reference_checks(
    gate: GateParams, candidate: Metrics, reference: Reference | None, spending: Spending | None
) -> list[Check]:
    """The check against the reference; none where it is the champion, or knows no class that occurs.

    Raises:
        StageFailed: when the rule asks for a comparison over resamples and there is none.
    """
    pairs = pairs_of(candidate, reference.measured) if reference else []
    if reference is None or not pairs:
        return []
    ground = Ground(f"{reference.record.version}, the reference,", candidate.num_images)
    if gate.rule == "point":
        return [point_mean(RULE, gate, pairs, ground)]
    if reference.comparison is None:
        raise StageFailed(f"gate: rule {gate.rule} needs the detections of the reference; run evaluate again")
    return [resampled_mean(RULE, gate, pairs, reference.comparison, ground, better=False, spending=spending)]


def renews_reference(
    gate: GateParams,
    candidate: Metrics,
    champion: Metrics | None,
    comparison: Comparison | None,
    reference: Reference | None,
    spending: Spending | None,
) -> bool:
    """Whether a promoted candidate takes the reference's place: shown to be better, or nothing of it can be compared."""
    other = reference.measured if reference else champion
    pairs = pairs_of(candidate, other)
    if not pairs:
        return True
    drawn = reference.comparison if reference else comparison
    if gate.rule == "point":
        return mean_gain(pairs) > 0
    confidence = gate.confidence if spending is None else 1 - spending.alpha
    return drawn is not None and superior(drawn.of_mean, drawn.num_independent, confidence) == "yes"
