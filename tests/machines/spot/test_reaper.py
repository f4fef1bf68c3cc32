"""What is past its deadline is ended, whoever forgot it; what is not, and what is not ours, stays."""

from datetime import timedelta

import pytest

from nightowl.machines.listing import by_run, rented, rows
from nightowl.machines.price import Prices
from nightowl.machines.reaper import in_words, overdue, reap
from tests.machines.spot.account import NOON, RUN, Account, Died, Fuse, FusedAws, client, job

MINUTES = timedelta(minutes=1)
OTHER = "line-fedcba9876543210"


def no_sleep(seconds: float) -> None:
    pass


def test_a_run_past_its_lease_is_ended_and_another_kept(account: Account) -> None:
    account.engine().submit(job())
    account.now += 20 * MINUTES
    account.engine().submit(job(OTHER))
    harvest = reap(FusedAws(Fuse()), NOON + 35 * MINUTES, no_sleep)
    assert harvest.clean and [each.run_id for each in harvest.kept] == [OTHER]
    assert account.instances(RUN) == [] and len(account.instances(OTHER)) == 1
    assert in_words(harvest) == [f"{RUN}: past its deadline 2026-07-01 12:30 UTC: 1 machines, 1 groups, 1 templates: gone"]
    assert reap(FusedAws(Fuse()), NOON + 35 * MINUTES, no_sleep).reaped == ()


def test_a_reaper_that_is_killed_anywhere_is_followed_by_the_next(account: Account) -> None:
    fuse = Fuse()
    account.engine().submit(job())
    reap(FusedAws(fuse), NOON + 35 * MINUTES, no_sleep)
    assert account.empty() and fuse.count >= 2, fuse.seen
    for at in range(1, fuse.count + 1):
        account.wipe()
        account.engine().submit(job(f"line-00000000000000{at:02x}"))
        with pytest.raises(Died):
            reap(FusedAws(Fuse(at)), NOON + 35 * MINUTES, no_sleep)
        reap(FusedAws(Fuse()), NOON + 13 * 60 * MINUTES, no_sleep)
        assert account.empty(), f"killed before step {at}"


def test_a_machine_whose_group_is_gone_is_found_by_its_own_tag(account: Account) -> None:
    tags = {"nightowl:project": "nightowl", "nightowl:run": RUN, "nightowl:deadline": "2026-07-01T12:30:00Z"}
    lone(account, tags)
    assert overdue(rented(FusedAws(Fuse())), NOON) == []
    assert reap(FusedAws(Fuse()), NOON + 31 * MINUTES, no_sleep).clean
    assert account.empty()


def lone(account: Account, tags: dict[str, str]) -> str:
    """A machine that no group keeps."""
    image = client("ssm").get_parameter(Name="/nightowl/image")["Parameter"]["Value"]
    specification = [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]
    made = client("ec2").run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=specification)
    return str(made["Instances"][0]["InstanceId"])


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ({"nightowl:run": RUN}, "no deadline"),
        ({"nightowl:run": RUN, "nightowl:deadline": "tomorrow"}, "a deadline that is none"),
        ({"nightowl:deadline": "2020-01-01T00:00:00Z"}, "no run"),
    ],
)
def test_what_has_our_tag_and_cannot_be_judged_is_told_and_left(account: Account, tags: dict[str, str], reason: str) -> None:
    machine = lone(account, {"nightowl:project": "nightowl", **tags})
    harvest = reap(FusedAws(Fuse()), NOON, no_sleep)
    assert not harvest.clean, reason
    assert account.instances() == [machine] and machine in in_words(harvest)[0]


def test_what_does_not_have_our_tag_is_not_looked_at(account: Account) -> None:
    machine = lone(account, {"Name": "someone's", "nightowl:deadline": "2020-01-01T00:00:00Z"})
    assert reap(FusedAws(Fuse()), NOON, no_sleep) == ((), (), ())
    assert account.instances() == [machine]


def test_a_group_says_until_when_and_its_machines_only_without_one(account: Account) -> None:
    engine = account.engine()
    engine.submit(job())
    client("autoscaling").create_or_update_tags(
        Tags=[
            {
                "ResourceId": f"nightowl-{RUN}",
                "ResourceType": "auto-scaling-group",
                "Key": "nightowl:deadline",
                "Value": "2026-07-01T13:00:00Z",
                "PropagateAtLaunch": True,
            }
        ]
    )
    (run,) = rented(FusedAws(Fuse()))
    assert run.deadline == NOON + 60 * MINUTES and not run.past(NOON + 59 * MINUTES) and run.past(NOON + 60 * MINUTES)
    (run,) = by_run([], run.instances, run.templates)
    assert run.deadline == NOON + 30 * MINUTES
    (run,) = by_run([], [], run.templates)
    assert run.deadline == NOON + 720 * MINUTES


def test_a_listing_has_age_and_cost_and_does_not_know_what_nobody_said(account: Account) -> None:
    account.engine().submit(job())
    found = rented(FusedAws(Fuse()))
    machine = found[0].instances[0]
    now = machine.launched_at + timedelta(hours=2)
    (row,) = rows(found, Prices([], {machine.type: 1.5}), now)
    assert row.hours == pytest.approx(2.0)
    assert (row.usd_per_hour, row.usd) == ((1.5, 3.0) if machine.lifecycle == "on-demand" else (None, None))
    (row,) = rows(found, Prices([], {}), now)
    assert (row.usd_per_hour, row.usd) == (None, None)
