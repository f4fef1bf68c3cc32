"""Which commits stay, and how often there is one: decided from values alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from nightowl.checkpoint.commits import Commit, Moment


@dataclass(frozen=True)
class Keep:
    """The newest `last`, the best, and the end of every `every_epochs`-th epoch (0: of none) stay."""

    last: int = 2  # the newest may turn out unreadable, after a power failure for one
    every_epochs: int = 0

    def always(self, moment: Moment) -> bool:
        """Whether a state stays, or must at least be written, however many follow at once."""
        ends_kept = self.every_epochs > 0 and moment.reason == "epoch" and moment.epoch % self.every_epochs == 0
        return ends_kept or moment.best or moment.finished or moment.reason == "stop"

    def superfluous(self, commits: Sequence[Commit]) -> list[Commit]:
        """Those of `commits`, given newest first, that may go."""
        best = next((commit for commit in commits if commit.moment.best), None)
        return [
            commit
            for place, commit in enumerate(commits)
            if place >= self.last and commit is not best and not self._ends_kept_epoch(commit.moment)
        ]

    def _ends_kept_epoch(self, moment: Moment) -> bool:
        return self.every_epochs > 0 and moment.reason == "epoch" and moment.epoch % self.every_epochs == 0


@dataclass(frozen=True)
class Cadence:
    """A state is due after `every_seconds`, or later where saving is dear: what it costs a step stays at `max_overhead` of the
    time between two."""

    every_seconds: float = 120.0
    max_overhead: float = 0.01

    def interval_seconds(self, cost_seconds: float) -> float:
        """Time from one state to the next, when the last one took `cost_seconds` of the steps' own time."""
        return max(self.every_seconds, cost_seconds / self.max_overhead)

    def is_due(self, since_seconds: float, cost_seconds: float) -> bool:
        return since_seconds >= self.interval_seconds(cost_seconds)
