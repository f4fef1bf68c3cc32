"""The stage `gate`: from what was measured tonight to the verdict. A refusal is a result like any other, not a failure."""

from pathlib import Path

from nightowl.evaluation.champion import read_champion
from nightowl.evaluation.gate import judge
from nightowl.evaluation.metrics import Metrics
from nightowl.files import write_record
from nightowl.params import Params
from nightowl.stages.frame import main
from nightowl.stages.workspace import Workspace


def run(params: Params, workspace: Workspace, out: Path) -> None:
    """Write `verdict.json` into `out`. Raises StageFailed when the two models were not measured alike."""
    candidate = Metrics.model_validate_json(workspace.metrics("candidate").read_bytes())
    measured = workspace.metrics("champion")
    champion = Metrics.model_validate_json(measured.read_bytes()) if measured.exists() else None
    verdict = judge(params.gate, candidate, champion, read_champion(workspace.champion))
    write_record(out / workspace.verdict.name, verdict)
    print(verdict.sentence)


if __name__ == "__main__":
    main("gate", run)
