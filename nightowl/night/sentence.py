"""The one sentence that a night ends with."""

from nightowl.evaluation.verdict import Verdict
from nightowl.night.record import Night, workspace_in_tree
from nightowl.registry.rules import Refusal


def ending_sentence(night: Night, version: str, refusal: Refusal | None) -> str:
    """What became of `version` and why: the gate's own sentence, and what stood in the way besides it."""
    verdict = Verdict.model_validate_json(workspace_in_tree(night).verdict.read_bytes())
    said = f"{night.detector} version {version}: {verdict.sentence}"
    if refusal is None or not verdict.promote:
        return said
    return f"{said} Not promoted all the same: {refusal.reason}."
