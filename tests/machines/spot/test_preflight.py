"""What stands in the way is said in one line each, and nothing is created. What moto does not answer is answered here."""

from datetime import UTC, datetime
from typing import Any

import pytest

from nightowl.cloud.ec2_errors import refusal
from nightowl.errors import RemoteError, SettingsError
from nightowl.machine_settings import MachineSettings
from nightowl.machines.findings import Finding, insist
from nightowl.machines.preflight import preflight
from nightowl.machines.quota import Room, quota_finding
from tests.machines.spot.account import REGION, Account, Fuse, FusedAws, client, job

PRICE = '{"terms": {"OnDemand": {"x": {"priceDimensions": {"y": {"unit": "Hrs", "pricePerUnit": {"USD": "1.5"}}}}}}}'
SPOT = {"InstanceType": "g5.xlarge", "AvailabilityZone": f"{REGION}a", "SpotPrice": "0.5", "Timestamp": datetime.now(UTC)}
ANSWERS: dict[str, Any] = {
    "GetCallerIdentity": {"Arn": "arn:aws:sts::123456789012:assumed-role/builder/me"},
    "GetServiceQuota": {"Quota": {"Value": 64.0}},
    "GetSpotPlacementScores": {"SpotPlacementScores": [{"Region": REGION, "Score": 9}]},
    "DescribeSpotPriceHistory": {"SpotPriceHistory": [SPOT, {**SPOT, "InstanceType": "g6.xlarge"}]},
    "GetProducts": {"PriceList": [PRICE]},
    "SimulatePrincipalPolicy": {"EvaluationResults": []},
}


class Told(FusedAws):
    """Answers of the account in moto, but where the test knows better: an answer, or what is raised."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(Fuse())
        self.answers, self.asked = {**ANSWERS, **answers}, []  # type: ignore[var-annotated]
        self.ahead_seconds = 0.4

    def call(self, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        self.asked.append((operation, arguments))
        if operation not in self.answers:
            return super().call(service, operation, **arguments)
        answer = self.answers[operation]
        if isinstance(answer, Exception):
            raise answer
        return answer(arguments) if callable(answer) else answer

    def _note_clock(self, answer: dict[str, Any]) -> None:
        pass


def findings(account: Account, aws: Told | None = None, **settings: Any) -> dict[str, Finding]:
    chosen = MachineSettings.model_validate({**account.settings.model_dump(), **settings})
    return {each.what: each for each in preflight(chosen, aws or Told())}


def test_where_nothing_is_amiss_everything_is_fine_and_nothing_was_made(account: Account) -> None:
    found = findings(account)
    assert {each.state for each in found.values()} == {"fine"}, list(map(str, found.values()))
    assert list(found) == [
        *("credentials", "clock", "board", "image", "network", "instance profile", "machines", "quota", "capacity", "price"),
        *("rights here", "rights of nodes"),
    ]
    assert account.empty()


def denied(action: str) -> Exception:
    return refusal("AccessDenied", "", action, REGION)


def open_to_the_world(account: Account) -> dict[str, Any]:
    vpc = client("ec2").describe_subnets(SubnetIds=[account.settings.subnets[0]])["Subnets"][0]["VpcId"]
    made = client("ec2").create_security_group(GroupName="open", Description="x", VpcId=vpc)["GroupId"]
    rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    client("ec2").authorize_security_group_ingress(GroupId=made, IpPermissions=[rule])
    return {"security_group": made}


def of_another_vpc(account: Account) -> dict[str, Any]:
    vpc = client("ec2").create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    return {"security_group": client("ec2").create_security_group(GroupName="far", Description="x", VpcId=vpc)["GroupId"]}


def simulated(denied: str) -> Any:
    def answer(arguments: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {"EvalActionName": action, "EvalDecision": "implicitDeny" if action == denied else "allowed"}
            for action in arguments["ActionNames"]
        ]
        return {"EvaluationResults": rows}

    return answer


@pytest.mark.parametrize(
    ("answers", "settings", "what", "expected"),
    [
        ({"GetCallerIdentity": RemoteError("no AWS credentials found")}, {}, "credentials", "no AWS credentials found"),
        ({"GetBucketLocation": {"LocationConstraint": None}}, {}, "board", f"factory is in us-east-1, .* to be in {REGION}"),
        ({"GetBucketLocation": refusal("NoSuchBucket", "no", "s3:x", REGION)}, {}, "board", "NoSuchBucket"),
        ({}, {"image": "/no/such"}, "image", f"machines.image: there is no SSM parameter /no/such in {REGION}"),
        ({}, {"image": "ami-00000000"}, "image", "there is no such machine image"),
        ({}, {"subnets": ["subnet-0"]}, "network", "subnet-0"),
        ({}, open_to_the_world, "network", "admits others than itself: remove those rules"),
        ({}, of_another_vpc, "network", "name a security group of theirs"),
        ({}, {"instance_profile": "nobody"}, "instance profile", "there is no instance profile nobody with a role"),
        ({}, {"instance_types": ["g99.huge"]}, "machines", "AWS has no g99.huge in .*: name other instance_types or subnets"),
        (
            {"GetServiceQuota": {"Quota": {"Value": 0.0}}},
            {},
            "quota",
            "1 x g5.xlarge need 4 spot vCPUs, the quota is 0.* ask for more",
        ),
        ({}, {"cost_cap_usd_per_hour": 0.4}, "price", "0.50 USD an hour for 1 at most; cost_cap_usd_per_hour is 0.4"),
        (
            {"DescribeSpotPriceHistory": {"SpotPriceHistory": []}},
            {"cost_cap_usd_per_hour": 99},
            "price",
            "unknown USD an hour",
        ),
        (
            {},
            {"cost_cap_usd_per_hour": 1, "done_by": "06:00", "on_demand": "near_deadline"},
            "price",
            "1.50 USD .* is 1",
        ),
        (
            {"SimulatePrincipalPolicy": simulated("ec2:CreateLaunchTemplate")},
            {},
            "rights here",
            "arn:aws:iam::123456789012:role/builder lacks ec2:CreateLaunchTemplate: see docs/permissions.md",
        ),
        ({"SimulatePrincipalPolicy": simulated("s3:GetObject")}, {}, "rights of nodes", "nightowl-node lacks s3:GetObject"),
    ],
)
def test_each_obstacle_is_one_line(account: Account, answers: Any, settings: Any, what: str, expected: str) -> None:
    changes = settings(account) if callable(settings) else settings
    found = findings(account, Told(**answers), **changes)
    assert found[what].state == "wrong"
    with pytest.raises(SettingsError, match=expected) as caught:
        insist([found[what]])
    assert "\n" not in str(caught.value) and account.empty()


@pytest.mark.parametrize(("ahead", "expected"), [(90.0, "90 s ahead of AWS's"), (-400.0, "400 s behind AWS's")])
def test_a_clock_that_is_off_is_wrong(account: Account, ahead: float, expected: str) -> None:
    aws = Told()
    aws.ahead_seconds = ahead
    found = findings(account, aws)["clock"]
    assert found.state == "wrong" and expected in found.said


def using(machines: int) -> dict[str, Any]:
    """Other machines of the account, of 4 vCPUs each."""
    row = {"InstanceType": "g4dn.xlarge", "InstanceLifecycle": "spot", "CpuOptions": {"CoreCount": 2, "ThreadsPerCore": 2}}
    return {"Reservations": [{"Instances": [row] * machines}]}


@pytest.mark.parametrize(
    ("rooms", "state", "said"),
    [
        ([], "unknown", "the spot quota of these types is not known here"),
        ([Room("2 x a", 8, 8, 0)], "fine", "enough spot vCPUs"),
        (
            [Room("2 x a", 8, 9, 2)],
            "unknown",
            "2 x a need 8 spot vCPUs, 2 of the quota of 9 are in use: it waits until they are free",
        ),
        ([Room("2 x a", 8, 4, 0), Room("2 x b", 4, 4, 0)], "fine", "2 x a need 8 spot vCPUs, the quota is 4"),
        (
            [Room("2 x a", 8, 4, 0), Room("2 x b", 4, 4, 1)],
            "unknown",
            "2 x a need 8 spot vCPUs, the quota is 4; 2 x b need 4 spot vCPUs, 1 of the quota of 4 are in use: "
            "it waits until they are free",
        ),
        ([Room("2 x a", 8, 4, 0)], "wrong", "2 x a need 8 spot vCPUs, the quota is 4: ask for more under Service Quotas"),
    ],
)
def test_a_quota_that_is_too_small_is_wrong_and_one_that_is_used_up_is_waited_for(
    rooms: list[Room], state: str, said: str
) -> None:
    assert quota_finding(rooms, "spot") == Finding(what="quota", state=state, said=said)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answers", "what", "expected"),
    [
        ({"SimulatePrincipalPolicy": denied("iam:SimulatePrincipalPolicy")}, "rights", "need iam:SimulatePrincipalPolicy"),
        ({"SimulatePrincipalPolicy": refusal("NoSuchEntity", "a path", "iam:Sim", REGION)}, "rights", "NoSuchEntity"),
        ({"GetSpotPlacementScores": refusal("UnsupportedOperation", "no", "ec2:Get", REGION)}, "capacity", "Unsupported"),
        (
            {"DescribeInstances": using(16)},
            "quota",
            "1 x g5.xlarge need 4 spot vCPUs, 64 of the quota of 64 are in use; 1 x g6",
        ),
        ({"GetServiceQuota": denied("servicequotas:GetServiceQuota")}, "quota", "need servicequotas:GetServiceQuota"),
        ({"GetSpotPlacementScores": {"SpotPlacementScores": [{"Score": 1}]}}, "capacity", "AWS expects little: 1 of 10"),
        ({"DescribeSpotPriceHistory": {"SpotPriceHistory": []}}, "price", "unknown USD"),
    ],
)
def test_what_cannot_be_known_is_said_and_stops_nothing(account: Account, answers: Any, what: str, expected: str) -> None:
    found = findings(account, Told(**answers))
    assert found[what].state == "unknown" and expected in found[what].said
    insist(found.values())


def test_everything_that_is_wrong_is_told_at_once(account: Account) -> None:
    found = findings(account, Told(GetServiceQuota={"Quota": {"Value": 0.0}}), instance_profile="nobody")
    with pytest.raises(SettingsError) as caught:
        insist(found.values())
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == ["instance profile", "quota"]


def test_a_run_for_which_something_is_wrong_creates_nothing(account: Account) -> None:
    engine = account.engine()
    engine._check = lambda: insist([Finding(what="quota", state="wrong", said="0 vCPUs")])
    with pytest.raises(SettingsError, match="quota: 0 vCPUs"):
        engine.submit(job())
    assert account.empty()
