"""The stage `gate`: from what was measured tonight to the verdict. A refusal is a result like any other, not a failure."""

from pathlib import Path

from nightowl.data.manifest import read_manifest
from nightowl.errors import StageFailed
from nightowl.evaluation.champion import read_champion
from nightowl.evaluation.comparison import Comparison, compare_detections
from nightowl.evaluation.detections import read_detections
from nightowl.evaluation.gate import judge
from nightowl.evaluation.metrics import Metrics
from nightowl.evaluation.truth import truth_of
from nightowl.files import write_record
from nightowl.params import Params
from nightowl.stages.frame import main
from nightowl.stages.workspace import Workspace


def run(params: Params, workspace: Workspace, out: Path) -> None:
    """Write `verdict.json` into `out`. Raises StageFailed when the two models were not measured alike."""
    candidate = Metrics.model_validate_json(workspace.metrics("candidate").read_bytes())
    measured = workspace.metrics("champion")
    champion = Metrics.model_validate_json(measured.read_bytes()) if measured.exists() else None
    comparison = _comparison(params, workspace) if champion and params.gate.rule != "point" else None
    verdict = judge(params.gate, candidate, champion, read_champion(workspace.champion), comparison)
    write_record(out / workspace.verdict.name, verdict)
    print(f"verdict: {verdict.sentence}")


def _comparison(params: Params, workspace: Workspace) -> Comparison:
    """Both models' detections on test, over the classes that the champion shares."""
    champion = read_detections(workspace.detections("champion"))
    candidate = read_detections(workspace.detections("candidate")).with_classes(champion.classes)
    dataset = read_manifest(workspace.dataset)
    truth = truth_of(dataset.classes, dataset.of("test"), champion.classes)
    if not truth.images == candidate.images == champion.images:
        raise StageFailed("gate: candidate and champion were not measured on the test images of today; run evaluate again")
    return compare_detections(truth, candidate, champion, params.gate, params.evaluate.max_detections)


if __name__ == "__main__":
    main("gate", run)
