"""'Done by 06:00', with an engine on AWS: over to full price when spot would miss it, once, and written down."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nightowl.machines import full_price as module
from nightowl.machines.board import Board, board_bucket
from nightowl.machines.full_price import full_price_of
from nightowl.machines.pace import Pace, recall
from nightowl.machines.price import Prices
from nightowl.machines.records import Event, RunEnd, StageEnd
from tests.machines.spot.account import NOON, RUN, Account, Died, Fuse, client, job

MINUTES = timedelta(minutes=1)
WISH: dict[str, Any] = {"done_by": "18:00", "on_demand": "near_deadline"}


@pytest.fixture(autouse=True)
def prices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read_prices", lambda aws, types, since: Prices([], dict.fromkeys(types, 1.5)))
    monkeypatch.setattr(module, "next_time", lambda clock, after: datetime(2026, 7, 1, 18, tzinfo=UTC))


def board(account: Account) -> Board:
    return Board(board_bucket(str(account.boards)), RUN)


def waiting_for_machines(account: Account, seconds: float) -> None:
    """A run whose machines were all taken back, and stages that took so long last time."""
    board_bucket(str(account.boards)).put(
        "pace/line.json",
        Pace(nodes=1, seconds={"prepare": 0, "train": seconds, "evaluate": 0}).model_dump_json().encode(),
    )
    account.engine(**WISH).submit(job())
    client("autoscaling").set_desired_capacity(AutoScalingGroupName=f"nightowl-{RUN}", DesiredCapacity=0)
    account.pass_time(15 * MINUTES)


def percentage(account: Account) -> int:
    (group,) = account.groups()
    return int(group["MixedInstancesPolicy"]["InstancesDistribution"]["OnDemandPercentageAboveBaseCapacity"])


def test_with_time_to_spare_it_stays_on_spot(account: Account) -> None:
    waiting_for_machines(account, 3600)
    account.engine(**WISH).renew(RUN)
    assert percentage(account) == 0 and full_price_of(board(account)) is None


def test_without_it_machines_come_at_full_price_and_it_is_written_down(account: Account) -> None:
    waiting_for_machines(account, 5.5 * 3600)
    account.engine(**WISH).renew(RUN)
    assert percentage(account) == 100 and len(account.instances()) == 1
    decision = full_price_of(board(account))
    assert decision and (decision.full_usd_per_hour, decision.spot_usd_per_hour) == (1.5, None)
    assert decision.reason == "5 min to spare: too little to wait for spot" and decision.at == NOON + 15 * MINUTES


def test_it_is_not_taken_where_that_is_not_allowed(account: Account) -> None:
    waiting_for_machines(account, 5.5 * 3600)
    account.engine(done_by="18:00").renew(RUN)
    assert percentage(account) == 0


def test_machines_that_are_there_are_left_alone(account: Account) -> None:
    waiting_for_machines(account, 5.5 * 3600)
    client("autoscaling").set_desired_capacity(AutoScalingGroupName=f"nightowl-{RUN}", DesiredCapacity=1)
    account.engine(**WISH).renew(RUN)
    assert percentage(account) == 0


def test_the_decision_survives_whoever_is_killed_over_it(account: Account) -> None:
    waiting_for_machines(account, 5.5 * 3600)
    fuse = Fuse()
    account.engine(fuse, **WISH).renew(RUN)
    num_steps = fuse.count
    account.engine().tear_down(RUN)
    for at in range(1, num_steps + 1):
        account.wipe()
        account.now = NOON
        waiting_for_machines(account, 5.5 * 3600)
        with pytest.raises(Died):
            account.engine(Fuse(at), **WISH).renew(RUN)
        account.pass_time(10 * MINUTES)
        account.engine(**WISH).renew(RUN)
        assert percentage(account) == 100 and len(account.instances()) == 1, f"killed before step {at}"
        account.engine().tear_down(RUN)


def test_the_next_run_knows_how_long_this_one_took(account: Account) -> None:
    account.engine().submit(job())
    here = board(account)
    steps = {"stage": "train", "steps": 100, "redone": 50, "instance": "i-1", "kind": "steps"}
    here.put_event(1, Event.model_validate({**steps, "start": NOON, "end": NOON + 60 * MINUTES}))
    for stage, seconds, executed in (("prepare", 5.0, False), ("train", 600.0, True), ("evaluate", 60.0, True)):
        ended = {"stage": stage, "seconds": seconds, "executed": executed, "instance": "i-1", "generation": 1}
        ended |= {"lock": "", "at": NOON}
        here.put_stage_end(StageEnd.model_validate(ended))
    here.put_end(RunEnd(how="done", message="", at=NOON))
    account.engine().tear_down(RUN)
    assert recall(board_bucket(str(account.boards)), job()) == {"train": 1800.0, "evaluate": 60.0}
    assert recall(board_bucket(str(account.boards)), job(nodes=2)) == {}
