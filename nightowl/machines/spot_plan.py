"""What to ask AWS for next, from what is there: pure, so that a run may be taken up from any point at which another stopped.

The order is the promise: the end of the machines is scheduled with AWS before the first of them can exist.
"""

from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from nightowl.cloud.ec2_groups import Group

Step = Literal["template", "group", "end", "capacity"]
_WITHIN = timedelta(seconds=30)


class Existing(NamedTuple):
    """What of a run is there. `end_at`: when AWS takes the machines from the group; None: that is not scheduled."""

    template: bool
    group: Group | None
    end_at: datetime | None

    @property
    def nothing(self) -> bool:
        return not self.template and self.group is None


def plan(existing: Existing, nodes: int, until: datetime) -> tuple[Step, ...]:
    """The steps to `nodes` machines that are there until `until` (aware), in their order; none when all of it is so."""
    group = existing.group
    raised = group is not None and group.desired >= nodes and group.most >= nodes
    steps: tuple[tuple[Step, bool], ...] = (
        ("template", not existing.template),
        ("group", group is None),
        ("end", existing.end_at is None or existing.end_at < until - _WITHIN),
        ("capacity", not raised),
    )
    return tuple(step for step, missing in steps if missing)
