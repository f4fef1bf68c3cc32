"""The stage `gate`: from what was measured tonight to the verdict. A refusal is a result like any other, not a failure."""

from pathlib import Path

from nightowl.data.blobs import BlobStore
from nightowl.data.manifest import read_manifest
from nightowl.errors import StageFailed
from nightowl.evaluation.budget import Question, Spending, read_history, spending_tonight
from nightowl.evaluation.canary import Canary, sing
from nightowl.evaluation.champion import ChampionRecord, read_champion
from nightowl.evaluation.comparison import Comparison, compare_detections
from nightowl.evaluation.cost import Cost
from nightowl.evaluation.detections import read_detections
from nightowl.evaluation.evidence import Evidence
from nightowl.evaluation.gate import judge
from nightowl.evaluation.gather import Against, Seen, figures_on_test, gather
from nightowl.evaluation.holdout import holdout_of
from nightowl.evaluation.instrument import Instrument
from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.reference import Reference
from nightowl.evaluation.slices import Slices
from nightowl.evaluation.truth import truth_of
from nightowl.evaluation.truth_table import read_truth
from nightowl.files import write_record
from nightowl.params import Params
from nightowl.settings import home_of
from nightowl.stages.frame import main
from nightowl.stages.workspace import Workspace


def run(params: Params, workspace: Workspace, out: Path) -> None:
    """Write `verdict.json` into `out`. Raises StageFailed when the two models were not measured alike."""
    candidate, champion = _measured(workspace, "candidate"), _measured(workspace, "champion")
    assert candidate is not None, "the stage evaluate has run"
    standing, reference = read_champion(workspace.champion), _reference(params, workspace)
    comparison = _comparison(params, workspace, "champion") if champion else None
    spending = _spending(params, workspace, candidate, standing, reference) if standing and comparison else None
    evidence = _evidence(params, workspace, champion is not None, out)
    canary = _canary(params, workspace, standing) if standing and champion else None
    verdict = judge(params.gate, candidate, champion, standing, comparison, spending, reference, evidence, canary)
    held_against = read_champion(workspace.reference)
    if held_against is not None:  # by its own number, also where its weights are the champion's
        verdict = verdict.model_copy(update={"reference_version": held_against.version})
    write_record(out / workspace.verdict.name, verdict)
    print(f"verdict: {verdict.sentence}")


def _measured(workspace: Workspace, whose: str) -> Metrics | None:
    path = workspace.metrics(whose)
    return Metrics.model_validate_json(path.read_bytes()) if path.exists() else None


def _reference(params: Params, workspace: Workspace) -> Reference | None:
    """The reference where it is another than the champion."""
    record, champion = read_champion(workspace.reference), read_champion(workspace.champion)
    if record is None or champion is None or record.weights_sha256 == champion.weights_sha256:
        return None
    measured = _measured(workspace, "reference")
    return Reference(record, measured, _comparison(params, workspace, "reference") if measured else None)


def _comparison(params: Params, workspace: Workspace, whose: str) -> Comparison | None:
    """The candidate's detections on test and those of another, over the classes that the other shares."""
    if params.gate.rule == "point":
        return None
    other = read_detections(workspace.detections(whose))
    candidate = read_detections(workspace.detections("candidate")).with_classes(other.classes)
    dataset = read_manifest(workspace.dataset)
    truth = truth_of(dataset.classes, dataset.of("test"), other.classes)
    if not truth.images == candidate.images == other.images:
        raise StageFailed(f"gate: candidate and {whose} were not measured on the test images of today; run evaluate again")
    return compare_detections(truth, candidate, other, params.gate, params.evaluate.max_detections)


def _evidence(params: Params, workspace: Workspace, compared: bool, out: Path) -> Evidence:
    """Parts of test and the operating point, whose figures are published beside the verdict."""
    candidate = read_detections(workspace.detections("candidate"))
    seen = Seen(read_truth(workspace.truth), candidate)
    figures = figures_on_test(params.gate, seen, OperatingPoint.model_validate_json(workspace.operating.read_bytes()))
    if figures is not None:
        write_record(out / workspace.operating_test.name, figures)
    slices = Slices.model_validate_json(workspace.slices.read_bytes()).slices
    against = None
    if compared:
        champion = read_detections(workspace.detections("champion"))
        against = Against(seen.truth.among(champion.classes), candidate.with_classes(champion.classes), champion)
    return gather(params.gate, seen, against, figures, slices, params.evaluate.max_detections, _cost(workspace))


def _cost(workspace: Workspace) -> Cost | None:
    return Cost.model_validate_json(workspace.cost.read_bytes()) if workspace.cost.exists() else None


def _canary(params: Params, workspace: Workspace, standing: ChampionRecord) -> Canary | None:
    """The champion tonight against the same when it was made; None where nothing was kept of that."""
    if standing.detections_sha256 is None or standing.instrument is None:
        return None
    blobs, what = BlobStore(home_of(workspace.settings) / "blobs"), f"champion v{standing.version}"
    kept = read_detections(blobs.verified_path(standing.detections_sha256, f"what {what} found when it was made"))
    past = read_manifest(blobs.verified_path(standing.dataset_version, f"the manifest of {what}"))
    instrument = Instrument.model_validate_json(workspace.instrument.read_bytes())
    tonight = read_detections(workspace.detections("champion")), read_manifest(workspace.dataset), instrument
    return sing(standing.version, (kept, past, standing.instrument), tonight, params.evaluate.max_detections)


def _spending(
    params: Params, workspace: Workspace, candidate: Metrics, standing: ChampionRecord, reference: Reference | None
) -> Spending:
    """What the decisions of the past leave for this one."""
    question = Question(
        candidate=candidate.weights_sha256,
        champion=standing.weights_sha256,
        reference=reference.record.weights_sha256 if reference else None,
        holdout=holdout_of(read_manifest(workspace.dataset)),
    )
    history = read_history(workspace.decisions)
    return spending_tonight(history, question, 1 - params.gate.confidence, params.gate.error_budget)


if __name__ == "__main__":
    main("gate", run)
