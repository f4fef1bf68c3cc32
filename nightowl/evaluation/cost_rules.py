"""The rules for time and size: what the exported model may take. Pure."""

from nightowl.evaluation.cost import Cost
from nightowl.evaluation.verdict import Check
from nightowl.evaluation.wording import budget_of_cost_in_words
from nightowl.params import GateParams


def cost_checks(gate: GateParams, cost: Cost | None, version: str | None) -> list[Check]:
    """A check for every budget that params set; a ratio to the champion needs one, of version `version`."""
    seconds = cost.seconds_per_image if cost else None
    theirs = cost.champion_seconds_per_image if cost else None
    size = float(cost.model_bytes) if cost else None
    checks = []
    if gate.max_seconds_per_image is not None:
        checks.append(_budget("seconds an image", seconds, gate.max_seconds_per_image, "s"))
    if gate.max_p99_seconds_per_image is not None:
        slowest = cost.p99_seconds_per_image if cost else None
        checks.append(_budget("seconds an image, p99", slowest, gate.max_p99_seconds_per_image, "s"))
    if gate.max_latency_ratio is not None and version is not None:
        ratio = seconds / theirs if seconds is not None and theirs else None
        checks.append(_budget(f"time against version {version}", ratio, gate.max_latency_ratio, "times"))
    if gate.max_model_bytes is not None:
        checks.append(_budget("model size", size, float(gate.max_model_bytes), "bytes"))
    return checks


def _budget(rule: str, figure: float | None, limit: float, unit: str) -> Check:
    passed = figure is not None and figure <= limit
    detail = budget_of_cost_in_words(rule, figure, limit, unit, passed)
    return Check(rule=rule, passed=passed, figure=figure, limit=limit, detail=detail)
