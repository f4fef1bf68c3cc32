"""Parity: a difference is seen, measured, said in words, and is a result."""

from collections.abc import Sequence

import pytest

from nightowl.errors import StageFailed
from nightowl.export.parity import Drift, ParityCheck, check, measured, refusals


@pytest.mark.parametrize(
    ("figure", "limit", "passed", "why"),
    [
        (0.0005, 0.001, True, "within"),
        (0.001, 0.001, True, "just"),
        (0.002, 0.001, False, "beyond"),
        (9.0, None, True, "said, not judged"),
        (None, 0.001, False, "what could not be measured does not pass"),
        (None, None, False, "nor where it is not judged"),
        (float("nan"), None, False, "NaN never passes"),
        (float("inf"), 0.001, False, "nor does infinity"),
    ],
)
def test_a_figure_is_held_against_its_limit(figure: float | None, limit: float | None, passed: bool, why: str) -> None:
    assert check("gap", figure, limit).passed is passed, why


def test_a_model_that_fails_on_the_way_is_a_failed_check() -> None:
    def work() -> Sequence[ParityCheck]:
        raise StageFailed("a.jpg: NaN")

    (failed,) = measured("on test", work)
    assert (failed.passed, failed.figure, failed.fault) == (False, None, "a.jpg: NaN")


def test_a_refusal_is_said_in_words() -> None:
    checks = (
        check("mAP50-95 gap on test", 0.25, 0.005),
        check("score gap", 0.1, 0.2),
        check("box gap", None, None, "a.jpg: NaN"),
    )
    assert refusals(checks, Drift(tensor="/model.2/Concat", module="/model.2", share=0.5)) == (
        "mAP50-95 gap on test: 0.25, at most 0.005",
        "box gap: could not be measured (a.jpg: NaN)",
        "first drifts in /model.2: /model.2/Concat differs by 50 % of its signal",
    )
    assert refusals(checks[1:2], None) == ()
