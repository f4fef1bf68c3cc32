"""The account of a run on nodes, as it goes into the night's report and beside the version that it made."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from nightowl.machines.bill import bill
from nightowl.machines.board import Board
from nightowl.machines.full_price import full_price_of
from nightowl.machines.goodput import Goodput, goodput
from nightowl.machines.job import Environment
from nightowl.machines.price import Prices
from nightowl.records import Record


class ReadPrices(Protocol):
    """See Site.prices."""

    def __call__(self, types: Iterable[str], since: datetime) -> Prices: ...


class Account(Record):
    """A run, what it ran in, and what became of the time and money. `full_price`: why machines were taken at full price."""

    run_id: str
    how: str
    environment: Environment
    full_price: str | None
    goodput: Goodput

    @property
    def rented(self) -> bool:
        """Does anybody ask money for the nodes?"""
        return not self.environment.here


def account_of(board: Board, read_prices: ReadPrices) -> Account | None:
    """The account of a run that is over; None where its board holds none."""
    job, end, beats, events = board.job(), board.end(), board.beats(), board.events()
    if job is None:
        return None
    prices = read_prices((beat.instance_type for beat in beats), job.submitted_at)
    paid, dear, newest = bill(beats, events, prices), full_price_of(board), board.newest_generation()
    return Account(
        run_id=job.run_id,
        how=end.how if end else "not ended",
        environment=job.environment,
        full_price=dear.reason if dear else None,
        goodput=goodput(
            paid,
            events,
            board.generation_ends(),
            num_generations=newest.number if newest else 0,
            wanted=(job.submitted_at, end.at if end else max((each.end for each in paid.machines), default=job.submitted_at)),
            usd_for_deadline=paid.deadline_usd(prices) if dear else None,
        ),
    )
