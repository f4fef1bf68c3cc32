"""The rules for time and size: what each exported artefact may take. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from nightowl.evaluation.cost import ArtefactCost, Cost
from nightowl.evaluation.verdict import Check
from nightowl.evaluation.wording import budget_of_cost_in_words
from nightowl.params import GateParams

_ONNX = "onnx"  # what is always made, and meant where a rule names no artefact


class CostFindings(NamedTuple):
    """`checks` of what ships or has to; `left_out`: the artefacts that break a budget and are not required, and why."""

    checks: list[Check]
    left_out: dict[str, tuple[str, ...]]


def judge_cost(gate: GateParams, cost: Cost | None, version: str | None) -> CostFindings:
    """Every artefact against every budget that params set; a ratio is to the ONNX of the champion, version `version`."""
    if cost is None:
        return CostFindings(_checks(gate, _ONNX, None, None, version), {})
    found = CostFindings([], {})
    for each in cost.artefacts:
        checks = _checks(gate, each.name, each, cost.champion_seconds_per_image, version)
        if each.required or all(check.passed for check in checks):
            found.checks.extend(checks)
        else:
            found.left_out[each.name] = _why(checks)
    return found


def _checks(gate: GateParams, name: str, cost: ArtefactCost | None, champion: float | None, version: str | None) -> list[Check]:
    seconds = cost.seconds_per_image if cost else None
    of = "" if name == _ONNX else f"{name}: "
    checks = []
    if gate.max_seconds_per_image is not None:
        checks.append(_budget(f"{of}seconds an image", seconds, gate.max_seconds_per_image, "s"))
    if gate.max_p99_seconds_per_image is not None:
        slowest = cost.p99_seconds_per_image if cost else None
        checks.append(_budget(f"{of}seconds an image, p99", slowest, gate.max_p99_seconds_per_image, "s"))
    if gate.max_latency_ratio is not None and version is not None:
        ratio = seconds / champion if seconds is not None and champion else None
        checks.append(_budget(f"{of}time against version {version}", ratio, gate.max_latency_ratio, "times"))
    if gate.max_model_bytes is not None:
        size = float(cost.num_bytes) if cost else None
        checks.append(_budget(f"{of}model size", size, float(gate.max_model_bytes), "bytes"))
    return checks


def _why(checks: Sequence[Check]) -> tuple[str, ...]:
    return tuple(check.detail for check in checks if not check.passed)


def _budget(rule: str, figure: float | None, limit: float, unit: str) -> Check:
    passed = figure is not None and figure <= limit
    detail = budget_of_cost_in_words(rule, figure, limit, unit, passed)
    return Check(rule=rule, passed=passed, figure=figure, limit=limit, detail=detail)
