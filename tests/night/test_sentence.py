import pytest

from nightowl.evaluation.verdict import Outcome, Verdict
from nightowl.night.sentence import ending_sentence
from nightowl.registry.rules import Refusal


@pytest.mark.parametrize(
    ("outcome", "refusal", "expected", "reason"),
    [
        ("promote", None, "line version 3 is the champion now. SAID.", "passed, and nothing in the way"),
        (
            "promote",
            Refusal("the tree was dirty", False),
            "line version 3 was not promoted: the tree was dirty. The gate: SAID.",
            "held back",
        ),
        (
            "refuse",
            Refusal("the verdict is `refuse`", True),
            "line version 3 was not promoted. SAID.",
            "the gate says why itself",
        ),
    ],
)
def test_the_sentence_tells_what_became_of_it_before_what_the_gate_said(
    outcome: Outcome, refusal: Refusal | None, expected: str, reason: str
) -> None:
    verdict = Verdict(
        outcome=outcome, basis="first_model", sentence="SAID.", checks=(), candidate_sha256="0" * 64, champion_version=None
    )
    assert ending_sentence("line", "3", verdict, refusal) == expected, reason
