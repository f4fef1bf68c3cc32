"""The tags by which everything that a run rented is found again, counted, and ended."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

RUN, DETECTOR, DEADLINE, PROJECT = "nightowl:run", "nightowl:detector", "nightowl:deadline", "nightowl:project"
OURS = {PROJECT: "nightowl"}
_FORM = "%Y-%m-%dT%H:%M:%SZ"

Tags = Mapping[str, str]


def tags_of(run_id: str, detector: str, deadline: datetime) -> dict[str, str]:
    """What every part of the run carries. `deadline` is aware."""
    return {**OURS, RUN: run_id, DETECTOR: detector, DEADLINE: as_tag(deadline)}


def as_tag(moment: datetime) -> str:
    """An aware time as UTC to the second, as AWS and `deadline_in` read it."""
    return moment.astimezone(UTC).strftime(_FORM)


def deadline_in(tags: Tags) -> datetime | None:
    """The time in the tag; None when there is none, or it is none."""
    try:
        return datetime.strptime(tags.get(DEADLINE, ""), _FORM).replace(tzinfo=UTC)
    except ValueError:
        return None


def to_aws(tags: Tags) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def from_aws(rows: list[dict[str, Any]] | None) -> dict[str, str]:
    return {row["Key"]: row.get("Value", "") for row in rows or []}


def filters(tags: Tags) -> list[dict[str, Any]]:
    """The filter of a Describe call: all of `tags`, with these values."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
