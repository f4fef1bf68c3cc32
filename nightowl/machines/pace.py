"""How long the stages of a detector take on machines, remembered from its last finished run at the root of the boards."""

from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from nightowl.cloud.bucket import Bucket, ObjectMissing
from nightowl.machines.board import Board
from nightowl.machines.job import Job
from nightowl.machines.records import Event
from nightowl.records import Record


class Pace(Record):
    """Seconds of work of each stage that was executed, with so many nodes."""

    nodes: int
    seconds: dict[str, float]


def worked_seconds(events: Iterable[Event]) -> dict[str, float]:
    """Of each stage, the seconds that went into steps which nobody had to do again; of several nodes, the longest's."""
    by_node: dict[tuple[str, str], float] = {}
    for event in events:
        if event.kind == "steps" and event.stage and event.steps:
            kept = (event.end - event.start).total_seconds() * max(0, event.steps - event.redone) / event.steps
            by_node[event.stage, event.instance] = by_node.get((event.stage, event.instance), 0.0) + kept
    return {stage: max(value for (name, _), value in by_node.items() if name == stage) for stage, _ in by_node}


def remember(boards: Bucket, board: Board, job: Job) -> None:
    """Keep the pace of a run that is done. What it restored and did not execute keeps its earlier one."""
    worked = worked_seconds(board.events())
    took = {end.stage: max(end.seconds, worked.get(end.stage, 0.0)) for end in board.stage_ends() if end.executed}
    if took:
        pace = Pace(nodes=job.nodes, seconds={**recall(boards, job), **took})
        boards.put(_key(job.detector), pace.model_dump_json(indent=2).encode())


def recall(boards: Bucket, job: Job) -> Mapping[str, float]:
    """The seconds of each stage of the detector, as far as a run with as many nodes has told."""
    try:
        pace = Pace.model_validate_json(boards.get(_key(job.detector)))
    except (ObjectMissing, ValidationError):
        return {}
    return pace.seconds if pace.nodes == job.nodes else {}


def _key(detector: str) -> str:
    return f"pace/{detector}.json"
