"""What nodes and the orchestrator tell one another by way of the board. Times are UTC, of the clock of whoever wrote."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from nightowl.records import Record

NodeState = Literal["booting", "ready", "training", "running", "leaving", "gone"]
Lifecycle = Literal["spot", "on-demand", "local"]
HowGenerationEnded = Literal["done", "preempted", "member_lost", "failed"]
HowRunEnded = Literal["done", "failed", "poison", "cancelled", "deadline"]
EventKind = Literal[
    "booted", "environment", "data", "cache", "stage", "steps", "checkpoint", "notice", "lost", "waiting", "left"
]


class NodeBeat(Record):
    """A node's heartbeat, replaced every few seconds. `address` is where its peers reach it; `step` is the last committed one
    of the training it leads, `taken` the last that it took."""

    instance: str
    address: str
    num_gpus: Annotated[int, Field(ge=0)]
    instance_type: str
    zone: str
    lifecycle: Lifecycle
    state: NodeState
    generation: int | None = None
    stage: str | None = None
    step: int | None = None
    taken: int | None = None
    at: AwareDatetime
    said: str = ""


class Member(Record):
    """A node with its rank among the nodes of a generation."""

    instance: str
    rank: Annotated[int, Field(ge=0)]
    address: str


class Generation(Record):
    """A fixed list of nodes that train together, in order of rank; they meet at `port` of rank 0."""

    number: Annotated[int, Field(ge=1)]
    members: Annotated[tuple[Member, ...], Field(min_length=1)]
    port: Annotated[int, Field(ge=1024, le=65535)]
    opened_at: AwareDatetime
    reason: str

    def rank_of(self, instance: str) -> int | None:
        return next((member.rank for member in self.members if member.instance == instance), None)


class GenerationEnd(Record):
    """Why a generation is over; the first to say so is believed."""

    number: int
    how: HowGenerationEnded
    message: str
    at: AwareDatetime
    by: str


class StageEnd(Record):
    """A stage whose outputs are in the shared cache. `lock`: the node's dvc.lock, which says what they are."""

    stage: str
    executed: bool
    seconds: float
    instance: str
    generation: int
    lock: str
    at: AwareDatetime


class StageFailure(Record):
    """A stage that a generation did not bring to its end. `step` is the last committed one, None before the first."""

    stage: str
    instance: str
    generation: int
    preempted: bool
    step: int | None
    message: str
    at: AwareDatetime


class Event(Record):
    """A span of a node's time, for the account of what was paid and what for."""

    instance: str
    kind: EventKind
    start: AwareDatetime
    end: AwareDatetime
    stage: str | None = None
    generation: int | None = None
    steps: int = 0
    redone: int = 0
    said: str = ""


class RunEnd(Record):
    """A run that has this is over: a node that boots afterwards leaves at once."""

    how: HowRunEnded
    message: str
    at: AwareDatetime


class Cancel(Record):
    """An operator's wish that the run end."""

    by: str
    at: AwareDatetime


class Claim(Record):
    """The orchestrator that drives the run, and when it last said so."""

    holder: str
    at: AwareDatetime


class LogLine(Record):
    """A line that a node wrote, in the piece `number` of its log."""

    instance: str
    number: int
    text: str
