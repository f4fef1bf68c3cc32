"""A file that is to ship, held against the trained model, and the record of that."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from nightowl.errors import StageFailed, WeightsError
from nightowl.evaluation.card import ModelCard
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.runners import OnnxRunner, ShippedRunner
from nightowl.export.comparisons import drift_of, fp16_checks, on_test, path_gap, tensor_checks
from nightowl.export.make import card_of
from nightowl.export.parity import Attempt, Drift, ParityCheck, check, measured, refusals
from nightowl.export.trained import Trained
from nightowl.export.whole_path import path_checks
from nightowl.export_params import ExportParams, Precision
from nightowl.files import sha256_file


class Tried(NamedTuple):
    """An attempt, and what its file finds on test (None: it could not be measured)."""

    attempt: Attempt
    detections: Detections | None


def hold(
    precision: Precision,
    trained: Trained,
    export: ExportParams,
    path: Path,
    open_file: Callable[[Path], ShippedRunner] = OnnxRunner,
) -> Tried:
    """The file at `path` against the trained model. A file that does not open or run, or says NaN, has failed; nothing is
    raised for it. What can only be asked of a graph is asked of an ONNX alone."""
    is_graph = path.suffix == ".onnx"
    try:
        runner = open_file(path)
    except WeightsError as error:
        return Tried(_attempt(precision, path, (check("the file opens", None, None, str(error)),), None), None)
    limits = export.limits_of(precision)
    found, by_test = on_test(precision, trained, export, runner)
    checks = (
        _card_check(runner.card, card_of(precision, trained, export)),
        *measured("tensors", lambda: tensor_checks(precision, trained, export, runner, path)),
        *measured("from file to box", lambda: path_checks(path_gap(trained, runner), limits)),
        *by_test,
        *(measured("FP16", lambda: fp16_checks(trained, limits.max_map50_95_gap)) if precision == "fp16" and is_graph else ()),
    )
    if all(each.passed for each in checks):
        return Tried(_attempt(precision, path, checks, None), found)
    try:
        return Tried(_attempt(precision, path, checks, drift_of(precision, trained, path)), found)
    except StageFailed as error:
        unknown = check("where it first drifts", None, None, str(error))
        return Tried(_attempt(precision, path, (*checks, unknown), None), found)


def not_made(precision: Precision, error: StageFailed) -> Tried:
    """An attempt without a file."""
    checks = (check("the file is made", None, None, str(error)),)
    attempt = Attempt(
        precision=precision,
        passed=False,
        checks=checks,
        refused=refusals(checks, None),
        drift=None,
        sha256=None,
        num_bytes=None,
    )
    return Tried(attempt, None)


def _attempt(precision: Precision, path: Path, checks: tuple[ParityCheck, ...], drift: Drift | None) -> Attempt:
    return Attempt(
        precision=precision,
        passed=all(each.passed for each in checks),
        checks=checks,
        refused=refusals(checks, drift),
        drift=drift,
        sha256=sha256_file(path),
        num_bytes=path.stat().st_size,
    )


def _card_check(found: ModelCard, expected: ModelCard) -> ParityCheck:
    pairs = [(part, getattr(found, part), getattr(expected, part)) for part in ModelCard.model_fields]
    differing = [
        f"{part}.{name}"
        for part, one, other in pairs
        for name in type(other).model_fields
        if getattr(one, name) != getattr(other, name)
    ]
    return check("entries of the file's card that are not the model's", len(differing), 0, ", ".join(differing) or None)
