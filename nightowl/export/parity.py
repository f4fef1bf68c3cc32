"""Does the exported model say what the trained one says? The record of every precision tried, and how a figure is judged.

A difference beyond its limit is a result (`passed` False), kept and reported; publishing is what refuses. What could not be
measured does not pass.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from pydantic import Field

from nightowl.errors import StageFailed
from nightowl.export_params import Precision
from nightowl.records import Record


class ParityCheck(Record):
    """One comparison. `figure` is None when it could not be measured; `limit` None: said, not judged; `fault` says more."""

    rule: str
    passed: bool
    figure: float | None
    limit: float | None
    fault: str | None = None


class Drift(Record):
    """The first place in the graph that says something else: a tensor and its module, and the difference's share of the
    signal (root mean squares); None where it is not a number."""

    tensor: str
    module: str
    share: float | None


class Attempt(Record):
    """A precision held against the trained model. `refused` says in words why it does not ship; empty when it may."""

    precision: Precision
    passed: bool
    checks: tuple[ParityCheck, ...]
    refused: tuple[str, ...]
    drift: Drift | None
    onnx_sha256: str
    num_bytes: int


class CalibrationImage(Record):
    """An image of train that the ranges of INT8 were taken from."""

    path: str
    sha256: str


class Parity(Record):
    """What ships against the weights it came from: the last of `attempts`, with its checks. `other_files` are those of
    other formats than the ONNX by name, with their SHA-256; a rule about such a format begins with its name.
    """

    passed: bool
    precision: Precision
    checks: tuple[ParityCheck, ...]
    attempts: tuple[Attempt, ...]
    calibration: tuple[CalibrationImage, ...]
    num_images: int
    weights_sha256: str
    onnx_sha256: str
    other_files: dict[str, str] = Field(default_factory=dict)


def check(rule: str, figure: float | None, limit: float | None, fault: str | None = None) -> ParityCheck:
    """`figure` against its limit; None, NaN and infinity never pass."""
    known = None if figure is None or not np.isfinite(figure) else float(figure)
    passed = known is not None and (limit is None or known <= limit)
    return ParityCheck(rule=rule, passed=passed, figure=known, limit=limit, fault=fault)


def measured(rule: str, work: Callable[[], Sequence[ParityCheck]]) -> tuple[ParityCheck, ...]:
    """The checks that `work` makes; a model that fails on the way has failed `rule`, and its error is the fault."""
    try:
        return tuple(work())
    except StageFailed as error:
        return (ParityCheck(rule=rule, passed=False, figure=None, limit=None, fault=str(error)),)


def together(attempt: Attempt, others: Mapping[str, Attempt]) -> Attempt:
    """An attempt with those of other formats made from its file, by the format's name: it passes if all do."""
    checks, refused = list(attempt.checks), list(attempt.refused)
    for name, other in others.items():
        checks += [each.model_copy(update={"rule": f"{name}: {each.rule}"}) for each in other.checks]
        refused += [f"{name}: {line}" for line in other.refused]
    passed = attempt.passed and all(other.passed for other in others.values())
    return attempt.model_copy(update={"checks": tuple(checks), "refused": tuple(refused), "passed": passed})


def refusals(checks: Sequence[ParityCheck], drift: Drift | None) -> tuple[str, ...]:
    """Why, in words, a line for each check that failed, and where in the graph it begins."""
    lines = [_in_words(each) for each in checks if not each.passed]
    if drift is not None and lines:
        share = "is not a number" if drift.share is None else f"differs by {100 * drift.share:.3g} % of its signal"
        lines.append(f"first drifts in {drift.module}: {drift.tensor} {share}")
    return tuple(lines)


def _in_words(failed: ParityCheck) -> str:
    found = "could not be measured" if failed.figure is None else f"{failed.figure:.4g}"
    allowed = "" if failed.limit is None else f", at most {failed.limit:g}"
    return f"{failed.rule}: {found}{allowed}" + (f" ({failed.fault})" if failed.fault else "")
