"""The one sentence that a night ends with."""

from nightowl.evaluation.verdict import Verdict
from nightowl.night.record import Night, workspace_in_tree
from nightowl.registry.rules import Refusal


def ending_sentence(night: Night, version: str, refusal: Refusal | None) -> str:
    """What became of `version` and why: the gate's own sentence, and what stood in the way besides it."""
    verdict = Verdict.model_validate_json(workspace_in_tree(night).verdict.read_bytes())
    said = verdict.sentence
    if refusal is not None and verdict.promote:
        said = f"Not promoted: {refusal.reason}. The gate would have let it pass: {said.removeprefix('Promoted: ')}"
    return f"{night.detector} version {version}: {said}"
