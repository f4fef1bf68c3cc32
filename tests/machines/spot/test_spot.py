"""The engine on AWS, where nothing goes wrong but time."""

import base64
from datetime import timedelta
from typing import Any

import pytest

from nightowl.cloud.ec2_groups import Activity
from nightowl.cloud.ec2_instances import tag
from nightowl.cloud.retry import Transient
from nightowl.errors import SettingsError, UserError
from nightowl.machines.board import Board, board_bucket
from nightowl.machines.records import RunEnd
from tests.machines.spot.account import NOON, RUN, Account, Fuse, client, job

MINUTES = timedelta(minutes=1)


def board(account: Account) -> Board:
    return Board(board_bucket(str(account.boards)), RUN)


def test_a_run_begins_with_its_end_scheduled_before_there_is_a_machine(account: Account) -> None:
    fuse = Fuse()
    assert account.engine(fuse).submit(job(nodes=1)) == RUN
    assert len(account.instances(RUN)) == 1
    writes = [each for each in fuse.seen if "Describe" not in each and "Get" not in each and each[:3] != "put"]
    assert writes == [
        "ec2:CreateLaunchTemplate",
        "autoscaling:CreateAutoScalingGroup",
        "autoscaling:CreateOrUpdateTags",
        "autoscaling:PutScheduledUpdateGroupAction",
        "autoscaling:UpdateAutoScalingGroup",
    ]
    (end,) = account.scheduled()
    assert end["StartTime"] == NOON + 30 * MINUTES
    assert (end["MinSize"], end["MaxSize"], end["DesiredCapacity"]) == (0, 0, 0)


def test_all_machines_are_spot_and_end_themselves_when_they_shut_down(account: Account) -> None:
    account.engine().submit(job())
    (group,) = account.groups()
    assert group["MixedInstancesPolicy"]["InstancesDistribution"]["OnDemandPercentageAboveBaseCapacity"] == 0
    assert group["MixedInstancesPolicy"]["InstancesDistribution"]["SpotAllocationStrategy"] == "price-capacity-optimized"
    assert [each["InstanceType"] for each in group["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]] == [
        "g5.xlarge",
        "g6.xlarge",
    ]
    found = client("ec2").describe_launch_template_versions(LaunchTemplateName=f"nightowl-{RUN}")
    data = found["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    assert data["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert data["MetadataOptions"]["HttpTokens"] == "required"
    assert base64.b64decode(data["UserData"]).decode() == f"#!/bin/bash\n# {RUN}\n"
    kinds = {each["ResourceType"]: {tag["Key"]: tag["Value"] for tag in each["Tags"]} for each in data["TagSpecifications"]}
    assert {"instance", "volume", "network-interface"} <= set(kinds)
    assert all(tags["nightowl:run"] == RUN and tags["nightowl:project"] == "nightowl" for tags in kinds.values())


def test_submitting_again_changes_nothing(account: Account) -> None:
    account.engine().submit(job(nodes=1))
    before = account.instances(), account.templates(), [group["AutoScalingGroupName"] for group in account.groups()]
    fuse = Fuse()
    account.engine(fuse).submit(job(submitted_at=NOON + MINUTES))
    assert before == (account.instances(), account.templates(), [group["AutoScalingGroupName"] for group in account.groups()])
    assert not [each for each in fuse.seen if "Create" in each or "Update" in each]


def test_of_two_who_submit_at_once_the_second_adopts(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one creates everything after this one has looked."""
    engine, other = account.engine(), account.engine()
    look = engine._machines.look

    def look_then_be_overtaken(run_id: str):  # type: ignore[no-untyped-def]
        found = look(run_id)
        other.submit(job())
        return found

    monkeypatch.setattr(engine._machines, "look", look_then_be_overtaken)
    engine.submit(job())
    assert (len(account.instances()), len(account.groups()), len(account.templates())) == (1, 1, 1)


def test_a_lease_is_renewed_when_a_third_of_it_is_over(account: Account) -> None:
    engine = account.engine()
    engine.submit(job())
    account.pass_time(5 * MINUTES)
    engine.renew(RUN)
    assert account.scheduled()[0]["StartTime"] == NOON + 30 * MINUTES
    account.pass_time(10 * MINUTES)
    engine.renew(RUN)
    assert account.scheduled()[0]["StartTime"] == NOON + 45 * MINUTES
    tags = client("ec2").describe_instances()["Reservations"][0]["Instances"][0]["Tags"]
    expected = {"Key": "nightowl:deadline", "Value": "2026-07-01T12:45:00Z"}
    assert expected in tags and len(account.instances()) == 1
    assert expected.items() <= next(tag for tag in account.groups()[0]["Tags"] if tag["Key"] == expected["Key"]).items()


def test_a_lease_never_passes_the_hard_end(account: Account) -> None:
    engine = account.engine()
    engine.submit(job(deadline=NOON + 40 * MINUTES))
    account.pass_time(15 * MINUTES)
    engine.renew(RUN)
    assert account.scheduled()[0]["StartTime"] == NOON + 40 * MINUTES
    account.pass_time(24 * MINUTES)
    fuse = Fuse()
    engine.renew(RUN)
    assert account.scheduled()[0]["StartTime"] == NOON + 40 * MINUTES and not fuse.seen
    account.pass_time(2 * MINUTES)
    engine.renew(RUN)
    assert account.instances() == [] and engine.status(RUN).state == "deadline"


def test_with_its_orchestrator_dead_the_deadline_leaves_no_machine(account: Account) -> None:
    account.engine().submit(job(nodes=1))
    account.pass_time(31 * MINUTES)
    assert account.instances() == []


def test_a_driver_that_slept_past_its_lease_gets_its_machines_back(account: Account) -> None:
    engine = account.engine()
    engine.submit(job())
    account.pass_time(45 * MINUTES)
    assert account.instances() == []
    engine.renew(RUN)
    assert len(account.instances()) == 1
    assert account.scheduled()[0]["StartTime"] == NOON + 75 * MINUTES


@pytest.mark.parametrize("over", ["cancelled", "ended"])
def test_what_is_over_is_not_renewed(account: Account, over: str) -> None:
    engine = account.engine()
    engine.submit(job())
    if over == "cancelled":
        engine.cancel(RUN)
    else:
        board(account).put_end(RunEnd(how="done", message="", at=NOON))
    account.pass_time(20 * MINUTES)
    engine.renew(RUN)
    assert account.scheduled()[0]["StartTime"] == NOON + 30 * MINUTES


def test_tearing_down_leaves_nothing_and_says_so(account: Account) -> None:
    engine = account.engine()
    engine.submit(job())
    assert engine.tear_down(RUN).nothing
    assert account.empty()
    assert engine.status(RUN).state == "cancelled"
    assert engine.tear_down(RUN).nothing


def test_tearing_down_leaves_another_run_alone(account: Account) -> None:
    engine, other = account.engine(), "line-fedcba9876543210"
    engine.submit(job())
    engine.submit(job(other))
    assert engine.tear_down(RUN).nothing
    assert len(account.instances(other)) == 1 and account.instances(RUN) == []


def test_a_run_that_is_done_is_not_begun_again(account: Account) -> None:
    engine = account.engine()
    engine.submit(job())
    board(account).put_end(RunEnd(how="done", message="", at=NOON))
    assert engine.tear_down(RUN).nothing
    assert engine.submit(job()) == RUN
    assert account.empty() and engine.status(RUN).state == "done"


def test_a_run_that_failed_begins_anew_when_it_is_asked_for_again(account: Account) -> None:
    engine = account.engine()
    engine.submit(job())
    board(account).put_end(RunEnd(how="failed", message="no space", at=NOON))
    later = job(submitted_at=NOON + 60 * MINUTES, deadline=NOON + 700 * MINUTES)
    engine.submit(later)
    assert len(account.instances()) == 1 and engine.status(RUN).state == "waiting"
    assert board(account).job() == later


def test_a_run_whose_hard_end_has_passed_begins_anew(account: Account) -> None:
    engine = account.engine()
    engine.submit(job(deadline=NOON + 60 * MINUTES))
    account.pass_time(90 * MINUTES)
    engine.submit(job(submitted_at=account.now, deadline=account.now + 60 * MINUTES))
    assert len(account.instances()) == 1 and engine.status(RUN).state == "waiting"


def test_a_job_whose_deadline_has_passed_is_refused_before_anything_is_made(account: Account) -> None:
    with pytest.raises(SettingsError, match="its deadline 2026-07-01 11:59 UTC has passed"):
        account.engine().submit(job(deadline=NOON - MINUTES))
    assert account.empty() and board(account).job() is None


def test_a_machine_that_went_while_its_lease_is_renewed_is_no_error(account: Account) -> None:
    engine = account.engine()
    engine.submit(job())
    client("ec2").delete_tags(Resources=account.instances(), Tags=[{"Key": "nightowl:deadline"}])
    tag(engine._aws, ["i-0123456789abcdef0", *account.instances()], {"nightowl:deadline": "x"})
    tags = client("ec2").describe_instances()["Reservations"][0]["Instances"][0]["Tags"]
    assert {"Key": "nightowl:deadline", "Value": "x"} in tags


def test_nobody_knows_a_run_that_was_not_submitted(account: Account) -> None:
    for verb in (account.engine().status, account.engine().renew, account.engine().cancel):
        with pytest.raises(UserError, match=f"no run '{RUN}' there"):
            verb(RUN)


def test_several_nodes_are_one_type_in_one_zone(account: Account) -> None:
    one = {"nodes": 3, "instance_types": ["g5.12xlarge"], "subnets": account.settings.subnets[:1]}
    account.engine(**one).submit(job(nodes=3, min_nodes=2))
    found = [each for row in client("ec2").describe_instances()["Reservations"] for each in row["Instances"]]
    assert len(found) == 3
    assert {each["Placement"]["AvailabilityZone"] for each in found} <= {"eu-central-1a", "eu-central-1b"}
    assert {each["SubnetId"] for each in found} == set(account.settings.subnets[:1])


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("InsufficientInstanceCapacity - We currently do not have", "no machine yet: AWS has no such machine free there now"),
        ("MaxSpotInstanceCountExceeded", "no machine yet: the account's quota of spot vCPUs is used up"),
        ("The moon is full", "no machine yet: The moon is full"),
    ],
)
def test_a_run_that_waits_says_what_aws_said(
    account: Account, monkeypatch: pytest.MonkeyPatch, message: str, expected: str
) -> None:
    engine = account.engine()
    engine.submit(job())
    failed = [Activity(NOON, True, message)]
    monkeypatch.setattr("nightowl.machines.spot.activities", lambda aws, name: failed)
    assert engine.status(RUN).state == "waiting" and engine.status(RUN).message.startswith(expected)


def test_throttling_between_any_two_calls_changes_nothing(account: Account) -> None:
    """Every request is refused once, as by an account that asks too much, before it is let through."""
    engine = account.engine()
    attempt, refused = engine._aws._attempt, set()

    def throttled(action: str, service: str, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if (key := (action, repr(arguments))) not in refused:
            refused.add(key)
            raise Transient("throttled", slow_down=True)
        return attempt(action, service, operation, arguments)

    engine._aws._attempt = throttled  # type: ignore[method-assign]
    engine.submit(job())
    assert (len(account.instances()), len(account.groups()), len(account.templates())) == (1, 1, 1)
    assert len(refused) >= 9
    assert engine.tear_down(RUN).nothing and account.empty()


def test_capacity_that_never_comes_leaves_a_run_that_waits_and_ends_with_its_lease(account: Account) -> None:
    engine = account.engine()
    engine.submit(job())
    client("autoscaling").set_desired_capacity(AutoScalingGroupName=f"nightowl-{RUN}", DesiredCapacity=0)
    assert engine.status(RUN).state == "waiting" and account.instances() == []
    account.pass_time(31 * MINUTES)
    assert account.scheduled() == [] and engine.tear_down(RUN).nothing
