"""The stage around the gate: what it reads, and what it publishes."""

from pathlib import Path

import pytest

from nightowl.errors import DataError, StageFailed
from nightowl.evaluation.verdict import Verdict
from nightowl.files import write_atomic, write_record
from nightowl.params import GateParams, Params
from nightowl.settings import Settings
from nightowl.stages.gate import run
from nightowl.stages.workspace import Workspace
from tests.evaluation.test_gate import measured, pinned


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A night without a champion, measured."""
    made = Workspace(tmp_path, "demo", Settings(home=tmp_path / "home"))
    write_record(made.metrics("candidate"), measured({"open": 0.6}))
    write_atomic(made.champion, "null\n")
    made.out("gate").mkdir(parents=True)
    return made


def test_the_verdict_is_published_and_said(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    run(Params(), workspace, workspace.out("gate"))
    verdict = Verdict.model_validate_json(workspace.verdict.read_bytes())
    assert verdict.promote and verdict.basis == "first_model"
    assert capsys.readouterr().out == verdict.sentence + "\n"


def test_a_refusal_is_a_result_and_not_a_failure(workspace: Workspace) -> None:
    run(Params(gate=GateParams(min_map50=0.9)), workspace, workspace.out("gate"))
    assert Verdict.model_validate_json(workspace.verdict.read_bytes()).outcome == "refuse"


def test_the_champion_measured_tonight_is_what_it_is_held_against(workspace: Workspace) -> None:
    write_record(workspace.champion, pinned(("open",)))
    with pytest.raises(StageFailed, match="not measured tonight"):
        run(Params(), workspace, workspace.out("gate"))
    write_record(workspace.metrics("champion"), measured({"open": 0.7}, "champion"))
    run(Params(), workspace, workspace.out("gate"))
    verdict = Verdict.model_validate_json(workspace.verdict.read_bytes())
    assert (verdict.outcome, verdict.basis, verdict.champion_version) == ("refuse", "against_champion", "4")


@pytest.mark.parametrize(("content", "message"), [(None, "no pinned champion"), ("{}", "not the record of a champion")])
def test_inputs_that_are_not_pinned_are_said(content: str | None, message: str, workspace: Workspace) -> None:
    workspace.champion.unlink()
    if content is not None:
        write_atomic(workspace.champion, content)
    with pytest.raises(DataError, match=message):
        run(Params(), workspace, workspace.out("gate"))
