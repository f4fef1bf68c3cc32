"""Until when AWS keeps the machines of a run if nobody says anything more: a lease, pushed on while someone drives the run."""

from datetime import datetime, timedelta
from typing import NamedTuple

_WITHIN = timedelta(seconds=30)  # AWS keeps whole seconds, and two clocks never agree quite


class Lease(NamedTuple):
    """Machines outlive the last word of their driver by `length`; `hard_end` (aware) is never passed."""

    length: timedelta
    hard_end: datetime

    def end(self, now: datetime) -> datetime:
        """The end of a lease that is taken or renewed now."""
        return min(now + self.length, self.hard_end)

    def due(self, ends_at: datetime | None, now: datetime) -> bool:
        """Is it time to renew a lease that ends then (None: none is in force)? When a third of it is over."""
        if ends_at is None:
            return True
        return ends_at < self.hard_end - _WITHIN and ends_at - now < self.length * 2 / 3
