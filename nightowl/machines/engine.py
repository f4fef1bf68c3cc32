"""Where stages run that are not run right here: one small interface, whatever machines stand behind it."""

from collections.abc import Iterator, Mapping
from typing import Literal, Protocol

from nightowl.machines.job import Job
from nightowl.machines.records import HowRunEnded, LogLine, NodeBeat
from nightowl.records import Record

RunState = Literal["waiting", "running"] | HowRunEnded


class RunStatus(Record):
    """A run as it is now. `state` is `waiting` while no node has begun, and how it ended afterwards."""

    run_id: str
    state: RunState
    message: str = ""
    stages_done: tuple[str, ...] = ()
    nodes: tuple[NodeBeat, ...] = ()
    generation: int | None = None

    @property
    def over(self) -> bool:
        return self.state not in ("waiting", "running")


class Remains(Record):
    """What still carries the run's tag, by its id; must be nothing."""

    instances: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        return not (self.instances or self.groups or self.templates or self.others)


class Engine(Protocol):
    """Each verb may be called again after a crash, by another process too."""

    def submit(self, job: Job) -> str:
        """Begin the run, or adopt it where it exists; returns its id."""

    def renew(self, run_id: str) -> None:
        """Keep the run's machines: whoever drives it says so at every poll, tens of seconds apart. It costs nothing when
        nothing is due."""

    def status(self, run_id: str) -> RunStatus:
        """How the run is. Raises UserError when there is no such run."""

    def logs(self, run_id: str, after: Mapping[str, int]) -> Iterator[LogLine]:
        """What nodes wrote, later than the piece `after[instance]` of each; an instance that is not in it from its start."""

    def cancel(self, run_id: str) -> None:
        """Have the run end soon: its nodes commit and leave."""

    def tear_down(self, run_id: str) -> Remains:
        """End everything that carries the run's tag, and say what is left."""
