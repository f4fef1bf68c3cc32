"""The decision to leave spot, made once for a run and kept on its board with what it costs an hour."""

from collections.abc import Mapping
from datetime import datetime

from pydantic import AwareDatetime, ValidationError

from nightowl.cloud.bucket import ObjectMissing
from nightowl.cloud.ec2_session import Aws
from nightowl.errors import RemoteError
from nightowl.machine_settings import MachineSettings
from nightowl.machines.board import Board
from nightowl.machines.deadline import Decision, Outlook, decide, left_seconds, next_time
from nightowl.machines.job import Job
from nightowl.machines.pace import worked_seconds
from nightowl.machines.price import read_prices
from nightowl.machines.standing import standing
from nightowl.records import Record

_KEY = "full_price.json"


class FullPrice(Record):
    """From `at` on, machines of the run are taken at full price. Prices are USD an hour of one machine; None: unknown."""

    at: AwareDatetime
    reason: str
    full_usd_per_hour: float | None
    spot_usd_per_hour: float | None


def full_price_of(board: Board) -> FullPrice | None:
    """The decision, where it was made."""
    try:
        return FullPrice.model_validate_json(board.bucket.get(_KEY))
    except ObjectMissing:
        return None
    except ValidationError as error:
        raise RemoteError(f"{board.bucket.url}{_KEY}: not readable: {error.errors()[0]['msg']}") from error


def consider(board: Board, job: Job, done_by: str, pace: Mapping[str, float], num_there: int, now: datetime) -> Decision:
    """Whether the run still makes it on spot with `num_there` machines in its group; `pace` in seconds a stage."""
    status = standing(board, now)
    left = left_seconds(job.stages, pace, status.stages_done, worked_seconds(board.events()))
    short = num_there < job.min_nodes
    wanted_at = next_time(done_by, job.submitted_at)
    outlook = Outlook(done_by=wanted_at, left_seconds=left, short_of_nodes=short, full_price=full_price_of(board) is not None)
    return decide(outlook, now)


def keep(aws: Aws, board: Board, settings: MachineSettings, zone: str, reason: str, now: datetime) -> None:
    """Write the decision down, unless it stands there. The first of the types stands for all in what it costs."""
    kind = settings.instance_types[0]
    prices = read_prices(aws, [kind], now)
    decision = FullPrice(
        at=now, reason=reason, full_usd_per_hour=prices.full[kind], spot_usd_per_hour=prices.spot_now(kind, zone)
    )
    if full_price_of(board) is None:
        board.bucket.put_if_absent(_KEY, decision.model_dump_json(indent=2).encode())
