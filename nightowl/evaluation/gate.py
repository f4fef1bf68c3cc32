"""The gate: decides whether a candidate may replace the champion, and says why. It returns a verdict and never fails on one.

Both models are measured tonight, on the same images, by the same code; anything else is an error, never a comparison. Pure:
no disk, no clock, no model. Figures are average precisions from 0 to 1; a point is 0.01.
"""

from collections.abc import Sequence

from nightowl.errors import StageFailed
from nightowl.evaluation.budget import Spending
from nightowl.evaluation.canary import Canary, canary_check
from nightowl.evaluation.champion import ChampionRecord
from nightowl.evaluation.comparison import Comparison
from nightowl.evaluation.cost_rules import judge_cost
from nightowl.evaluation.drops import Ground, drop_checks, pairs_of, shared
from nightowl.evaluation.evidence import Evidence
from nightowl.evaluation.metrics import ClassMetrics, Metrics
from nightowl.evaluation.operating_rules import operating_checks
from nightowl.evaluation.part_rules import floor_checks
from nightowl.evaluation.reference import Reference, reference_checks, renews_reference
from nightowl.evaluation.verdict import Basis, Check, Outcome, Verdict
from nightowl.evaluation.wording import class_change_in_words, floor_in_words, sentence_of
from nightowl.params import GateParams

NOTHING_MORE = Evidence()
_ROUNDING = 1e-9  # 0.51 - 0.50 is a little more than 0.01, and must not break a limit of 0.01


def judge(
    gate: GateParams,
    candidate: Metrics,
    champion: Metrics | None,
    standing: ChampionRecord | None,
    comparison: Comparison | None = None,
    spending: Spending | None = None,
    reference: Reference | None = None,
    evidence: Evidence = NOTHING_MORE,
    canary: Canary | None = None,
) -> Verdict:
    """The verdict on `candidate`. `standing` is the pinned champion, `champion` what was measured of it tonight, `comparison`
    how their difference varies with the images (not needed by the rule `point`). `spending` is what the error budget leaves
    for tonight, `reference` the version that a slow decline is measured by (None where it is the champion itself).
    `evidence` is what params may set limits to beyond that, `canary` the champion held against itself as it was when made
    (None where nothing was kept of that).

    In this order: the champion itself is not judged again; too little data decides nothing; absolute floors, overall and of
    each part; limits at the operating point; budgets of time and size, where an artefact that is not required is left out
    and no more; against the champion, over the classes that both know
    by name, the rule of params. What is shown to fail refuses; what the data cannot tell leaves it undecided. The first model
    of a detector, and one with no class in common with its champion, are judged without the last of them.

    Raises:
        StageFailed: when the two were not measured on the same images and truth, or a comparison is missing.
    """
    _refuse_unequal_ground(candidate, champion, standing)
    if reference is not None:
        _refuse_unequal_ground(candidate, reference.measured, reference.record)
    basis, pairs = _basis(candidate, standing), pairs_of(candidate, champion)
    version = standing.version if standing else None
    checks = [_enough_images(gate, candidate), *_floors(gate, candidate), *floor_checks(gate, candidate, evidence.floors)]
    cost = judge_cost(gate, evidence.cost, version)
    checks += [*operating_checks(gate, evidence.operating), *cost.checks]
    checks += _same_classes(gate, candidate, standing)
    if standing is not None and basis == "against_champion":
        checks += drop_checks(gate, pairs, comparison, Ground(standing.version, candidate.num_images), spending, evidence.drops)
        checks += reference_checks(gate, candidate, reference, spending)
        checks += [canary_check(gate, canary)] if canary else []
    outcome = _outcome(candidate, standing, checks)
    return Verdict(
        outcome=outcome,
        basis=basis,
        sentence=sentence_of(outcome, basis, version, checks, _not_compared(candidate, standing)),
        checks=tuple(checks),
        candidate_sha256=candidate.weights_sha256,
        champion_version=version,
        not_judged=tuple(c.name for c in candidate.classes if c.ap50 is None),
        left_out=cost.left_out,
        spending=spending if checks[0].passed and outcome != "same_model" else None,
        reference_version=reference.record.version if reference else version,
        renews_reference=outcome == "promote" and renews_reference(gate, candidate, champion, comparison, reference, spending),
    )


def _refuse_unequal_ground(candidate: Metrics, champion: Metrics | None, standing: ChampionRecord | None) -> None:
    if candidate.split != "test":
        raise StageFailed(f"gate: the candidate was measured on {candidate.split}; the gate judges on test only")
    if champion is None:
        if standing is not None and _common_names(candidate, standing):
            raise StageFailed(f"gate: version {standing.version} is champion but was not measured tonight; run evaluate again")
        return
    if standing is None:
        raise StageFailed(f"gate: {champion.model} was measured as champion but none is pinned; run evaluate again")
    if champion.weights_sha256 != standing.weights_sha256:
        raise StageFailed(
            f"gate: measured were weights {champion.weights_sha256[:12]}, but the champion, version {standing.version}, has "
            f"{standing.weights_sha256[:12]}; run evaluate again"
        )
    for field in ("dataset_version", "split", "num_images"):
        ours, theirs = getattr(candidate, field), getattr(champion, field)
        if ours != theirs:
            raise StageFailed(
                f"gate: candidate and champion differ in {field} ({ours} and {theirs}); measure both on the same images"
            )
    for pair in shared(candidate, champion):
        if _truth(pair.candidate) != _truth(pair.champion):
            raise StageFailed(
                f"gate: class {pair.name} has {pair.candidate.num_truth} true objects for the candidate and "
                f"{pair.champion.num_truth} for the champion; measure both on the same truth"
            )


def _enough_images(gate: GateParams, candidate: Metrics) -> Check:
    count, needed = candidate.num_images, gate.min_test_images
    detail = (
        f"{count} test images" if count >= needed else f"{count} test images cannot carry a decision; {needed} would suffice"
    )
    return Check(rule="test images", passed=count >= needed, figure=float(count), limit=float(needed), detail=detail)


def _floors(gate: GateParams, candidate: Metrics) -> list[Check]:
    """The absolute floors of the means."""
    images = candidate.num_images
    return [
        _floor("mAP50", candidate.map50, gate.min_map50, images),
        _floor("mAP50-95", candidate.map50_95, gate.min_map50_95, images),
    ]


def _floor(measure: str, figure: float | None, limit: float, images: int) -> Check:
    passed = figure is not None and figure >= limit - _ROUNDING
    detail = floor_in_words(measure, None, figure, limit, passed, images)
    return Check(rule=f"{measure} floor", passed=passed, figure=figure, limit=limit, detail=detail)


def _same_classes(gate: GateParams, candidate: Metrics, standing: ChampionRecord | None) -> list[Check]:
    """A failed check where the class list changed and params refuse that; where they do not, the sentence says it."""
    if standing is None or gate.class_change == "compare_common" or not _not_compared(candidate, standing):
        return []
    ours, theirs = {c.name for c in candidate.classes}, set(standing.classes)
    detail = class_change_in_words(sorted(ours - theirs), sorted(theirs - ours), standing.version)
    return [Check(rule="class list", passed=False, figure=float(len(ours ^ theirs)), limit=0.0, detail=detail)]


def _outcome(candidate: Metrics, standing: ChampionRecord | None, checks: Sequence[Check]) -> Outcome:
    if standing is not None and candidate.weights_sha256 == standing.weights_sha256:
        return "same_model"
    if not checks[0].passed or any(check.figure is None and not check.passed for check in checks):
        return "undecided"
    failed = [check for check in checks if not check.passed]
    if not failed:
        return "promote"
    return "undecided" if all(check.undecided for check in failed) else "refuse"


def _basis(candidate: Metrics, standing: ChampionRecord | None) -> Basis:
    if standing is None:
        return "first_model"
    return "against_champion" if _common_names(candidate, standing) else "no_common_class"


def _common_names(candidate: Metrics, standing: ChampionRecord) -> list[str]:
    return [c.name for c in candidate.classes if c.name in standing.classes]


def _not_compared(candidate: Metrics, standing: ChampionRecord | None) -> list[str]:
    """Classes that only one of the two models knows."""
    return sorted({c.name for c in candidate.classes} ^ set(standing.classes)) if standing else []


def _truth(metrics: ClassMetrics) -> tuple[int, bool, bool]:
    return metrics.num_truth, metrics.ap50 is None, metrics.ap50_95 is None
