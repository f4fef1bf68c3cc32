"""Does the exported model say what the trained one says? The record of every precision tried, and how a figure is judged.

A difference beyond its limit is a result (`passed` False), kept and reported; publishing is what refuses. What could not be
measured does not pass.
"""

from collections.abc import Callable, Sequence

import numpy as np

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
    """A file in a precision, held against the trained model. `refused` says in words why it does not ship; empty when it may.
    Digest and size are None where the file could not be made."""

    precision: Precision
    passed: bool
    checks: tuple[ParityCheck, ...]
    refused: tuple[str, ...]
    drift: Drift | None
    sha256: str | None
    num_bytes: int | None


class CalibrationImage(Record):
    """An image of train that the ranges of INT8 were taken from."""

    path: str
    sha256: str


class FormatParity(Record):
    """A format beside the ONNX: every precision tried, up to the one that ships. `files` are its own by name, with their
    SHA-256; there are none when it is left out, as no attempt passed."""

    name: str
    required: bool
    attempts: tuple[Attempt, ...]
    files: dict[str, str]

    @property
    def shipped(self) -> Attempt | None:
        """What ships, or None where it is left out."""
        return self.attempts[-1] if self.attempts[-1].passed else None


class Parity(Record):
    """What ships against the weights it came from: of the ONNX the last of `attempts`, with its checks, and `others` beside
    it. It passes if the ONNX does, and every format that is required."""

    passed: bool
    precision: Precision
    checks: tuple[ParityCheck, ...]
    attempts: tuple[Attempt, ...]
    calibration: tuple[CalibrationImage, ...]
    num_images: int
    weights_sha256: str
    onnx_sha256: str
    others: tuple[FormatParity, ...] = ()


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
