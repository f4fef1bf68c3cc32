"""Which labels are worth a second look."""

import pytest

from nightowl.data.manifest import Box
from nightowl.evaluation.detections import gather
from nightowl.evaluation.postprocess import Found
from nightowl.evaluation.suspicious import suspicious_labels
from nightowl.evaluation.truth import truth_of
from tests.evaluation.test_changes import CLASSES, ELSEWHERE, ONE, A, B, found, image

BOTH = found((A, 0.9, 0), (B, 0.9, 1))


@pytest.mark.parametrize(
    ("candidate", "champion", "expected", "reason"),
    [
        (BOTH, found(), [], "all is as labelled"),
        (found((A, 0.9, 0), (B, 0.9, 1), (ELSEWHERE, 0.8, 1)), found(), [("no label", "short", None)], "confident, no label"),
        (found((A, 0.9, 0), (B, 0.9, 1), (ELSEWHERE, 0.5, 1)), found(), [], "not confident enough to doubt a label"),
        (found((A, 0.9, 0), (B, 0.9, 1), (A, 0.8, 0)), found(), [], "said twice: the model's fault, not the label's"),
        (
            found((A, 0.9, 1), (B, 0.9, 1)),
            found((A, 0.02, 0)),
            [("another label", "short", "open")],
            "confident of another class; the object itself was found by the champion",
        ),
        (found((A, 0.9, 0)), found(), [("never found", "short", "short")], "nobody finds it"),
        (found((A, 0.9, 0)), found((B, 0.01, 1)), [], "the champion does, however unsure"),
        (found((A, 0.9, 0)), found((B, 0.9, 0)), [("never found", "short", "short")], "as another class is not found"),
    ],
)
def test_a_label_is_suspicious_when(
    candidate: Found, champion: Found, expected: list[tuple[str, str, str | None]], reason: str
) -> None:
    ours, theirs = (gather(CLASSES, ["a.png"], [each]) for each in (candidate, champion))
    listed = suspicious_labels(truth_of(CLASSES, ONE), ours, [theirs])
    assert [(each.why, each.name, each.labelled) for each in listed] == expected, reason


def test_a_champion_of_fewer_classes_still_counts_for_those() -> None:
    theirs = gather(("short",), ["a.png"], [found((B, 0.1, 0))])
    ours = gather(CLASSES, ["a.png"], [found()])
    listed = suspicious_labels(truth_of(CLASSES, ONE), ours, [theirs])
    assert [(each.why, each.name, each.score) for each in listed] == [("never found", "open", None)]


def test_a_detection_in_a_crowd_is_no_reason_and_neither_is_a_crowd_that_nobody_finds() -> None:
    crowd = (image("a.png", Box(0, 0, 0, 100, 100, ignore=True)),)
    for ours in (found(), found((A, 0.9, 0))):
        assert suspicious_labels(truth_of(CLASSES, crowd), gather(CLASSES, ["a.png"], [ours])) == ()


def test_the_most_confident_come_first() -> None:
    ours = gather(CLASSES, ["a.png"], [found((ELSEWHERE, 0.7, 1), ((50, 50, 59, 59), 0.95, 0))])
    listed = suspicious_labels(truth_of(CLASSES, ONE), ours)
    assert [each.score for each in listed] == [0.95, 0.7, None, None]
