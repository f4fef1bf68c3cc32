"""The one sentence that a night ends with."""

from nightowl.evaluation.verdict import Verdict
from nightowl.registry.rules import Refusal


def ending_sentence(detector: str, version: str, verdict: Verdict, refusal: Refusal | None) -> str:
    """What became of `version` and why: the gate's own sentence, and what stood in the way when it had passed."""
    name = f"{detector} version {version}"
    if refusal is None:
        return f"{name} is the champion now. {verdict.sentence}"
    if verdict.promote:
        return f"{name} was not promoted: {refusal.reason}. The gate: {verdict.sentence}"
    return f"{name} was not promoted. {verdict.sentence}"
