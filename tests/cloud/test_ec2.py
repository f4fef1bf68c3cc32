"""The verbs by which machines are rented, where AWS refuses, is slow, or lost the answer; most against answers written down
here, as moto refuses almost nothing."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from nightowl.cloud.ec2_errors import AwsRefused, explain_capacity
from nightowl.cloud.ec2_facts import role_arn
from nightowl.cloud.ec2_groups import GroupSpec, create_group, delete_group
from nightowl.cloud.ec2_instances import leave_group, terminate
from nightowl.cloud.ec2_prices import SpotPrice, on_demand_price, spot_prices
from nightowl.cloud.ec2_quotas import quota_code, quota_vcpus, vcpus_in_use
from nightowl.cloud.ec2_session import Aws
from nightowl.cloud.ec2_tags import as_tag, deadline_in
from nightowl.cloud.ec2_templates import TemplateSpec, create_template
from nightowl.cloud.retry import RetryPolicy
from nightowl.errors import RemoteError

HASTY = RetryPolicy(attempts=3, first_seconds=0.001, longest_seconds=0.002)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
GROUP = GroupSpec("nightowl-x", "nightowl-x", ("g5.xlarge",), ("subnet-1",), 1, {})
TEMPLATE = TemplateSpec("nightowl-x", "ami-1", "sg-1", "nightowl-node", "#!/bin/bash", 100, "/dev/sda1", {})


class Answering(Aws):
    """AWS with the answers of a test: an answer, or what is raised, one for each request; the last one again and again."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        super().__init__("eu-central-1", policy=HASTY)
        self.answers, self.requests = list(answers), []

    def _client(self, service: str) -> Any:
        return self

    def __getattr__(self, operation: str) -> Any:
        def answer(**arguments: Any) -> dict[str, Any]:
            self.requests.append((operation, arguments))
            given = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if isinstance(given, Exception):
                raise given
            return given

        return answer


def no(code: str, message: str = "", status: int = 400) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}, "X")


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (
            no("UnauthorizedOperation", "You are not authorized"),
            r"the credentials in use need ec2:DescribeImages: see docs/perm",
        ),
        (no("AccessDenied", "User: arn:x is not authorized to perform: iam:PassRole on"), "need iam:PassRole"),
        (no("AuthFailure", "AWS was not able to validate"), r"credentials refused: AWS does not know them \(AuthFailure\)"),
        (no("ExpiredToken"), "the session token has expired: log in again"),
        (
            no("SignatureDoesNotMatch", "Signature expired: 2026 is now earlier than"),
            "the clock of this machine is off by minutes",
        ),
        (no("RequestExpired"), "the clock of this machine is off by minutes"),
        (no("SignatureDoesNotMatch", "The request signature we calculated"), "the secret key does not fit"),
        (no("OptInRequired"), "has not opened the region eu-central-1"),
        (no("VcpuLimitExceeded", "You have requested more"), "quota of vCPUs is used up: ask for more under Service Quotas"),
        (no("MaxSpotInstanceCountExceeded"), "quota of spot vCPUs is used up"),
        (no("InsufficientInstanceCapacity"), "AWS has no such machine free there now: name more instance_types or subnets"),
        (no("InvalidAMIID.NotFound", "The image id '[ami-1]' does not exist"), "there is no such machine image in this region"),
        (
            no("Unsupported", "Your requested instance type (x) is not supported in your requested Availability Zone (a)"),
            "others",
        ),
        (no("UnsupportedOperation", "Not here"), r"AWS refused it \(UnsupportedOperation: Not here\)"),
        (no("Strange", "of\n  many lines"), r"AWS refused it \(Strange: of many lines\)"),
        (no("RequestLimitExceeded", status=503), "AWS asks for fewer requests .*; gave up after 3 attempts"),
        (EndpointConnectionError(endpoint_url="https://x"), "is eu-central-1 a region of AWS, and is there a network"),
    ],
)
def test_what_aws_refuses_is_one_line_that_says_what_to_do(refusal: Exception, expected: str) -> None:
    with pytest.raises(RemoteError, match=expected) as caught:
        Answering(refusal).call("ec2", "DescribeImages")
    assert str(caught.value).startswith("ec2:DescribeImages in eu-central-1: ") and "\n" not in str(caught.value)


def test_no_credentials_is_one_line_that_says_where_they_were_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(RemoteError, match="sts:GetCallerIdentity in eu-central-1: no AWS credentials found; looked in AWS_ACC"):
        Aws("eu-central-1", policy=HASTY).call("sts", "GetCallerIdentity")


@pytest.mark.parametrize(
    "passing",
    [
        no("Throttling"),
        no("RequestLimitExceeded", status=503),
        no("InternalError", status=500),
        no("ScalingActivityInProgress"),
        EndpointConnectionError(endpoint_url="https://x"),
    ],
    ids=lambda error: error.response["Error"]["Code"] if isinstance(error, ClientError) else "no connection",
)
def test_what_passes_by_itself_is_tried_again(passing: Exception) -> None:
    aws = Answering(passing, passing, {"Images": []})
    assert aws.call("ec2", "DescribeImages") == {"Images": []}
    assert len(aws.requests) == 3


def test_all_pages_are_read() -> None:
    aws = Answering({"Rows": [1], "NextToken": "a"}, {"Rows": [2, 3], "NextToken": "b"}, {"Rows": []})
    assert list(aws.pages("ec2", "DescribeImages", "Rows", Owners=["self"])) == [1, 2, 3]
    assert [sent.get("NextToken") for _, sent in aws.requests] == [None, "a", "b"]


def test_a_creation_whose_answer_was_lost_is_the_same_creation() -> None:
    """The repetition finds what the first request made: with its client token, or by its name."""
    aws = Answering(EndpointConnectionError(endpoint_url="x"), no("InvalidLaunchTemplateName.AlreadyExistsException"))
    create_template(aws, TEMPLATE, "token")
    assert {sent["ClientToken"] for _, sent in aws.requests} == {"token"}
    create_group(Answering(no("AlreadyExists", "AutoScalingGroup by this name already exists")), GROUP)


def test_what_is_gone_already_is_no_error() -> None:
    delete_group(Answering(no("ValidationError", "AutoScalingGroup name not found - no such group")), "nightowl-x")
    aws = Answering(no("InvalidInstanceID.NotFound"), no("InvalidInstanceID.NotFound"), {})
    terminate(aws, ["i-1", "i-2"])
    assert [sent["InstanceIds"] for _, sent in aws.requests] == [["i-1", "i-2"], ["i-1"], ["i-2"]]
    with pytest.raises(AwsRefused, match="AWS refused it"):
        delete_group(Answering(no("ValidationError", "something else")), "nightowl-x")


def test_why_a_group_could_not_start_a_machine_is_said_in_our_words() -> None:
    told = "We currently do not have sufficient g5 capacity (InsufficientInstanceCapacity)"
    assert "name more instance_types" in (explain_capacity(told) or "")
    assert "quota" in (explain_capacity("Launching failed. MaxSpotInstanceCountExceeded: Max spot") or "")
    assert explain_capacity("Who knows") is None


def test_a_node_without_a_region_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(RemoteError, match="no AWS region: set AWS_REGION"):
        leave_group("i-1", decrement=True)


def test_how_far_the_clock_is_off_is_known_from_any_answer() -> None:
    ago = datetime.now(UTC) - timedelta(minutes=3)
    aws = Answering({"ResponseMetadata": {"HTTPHeaders": {"date": f"{ago:%a, %d %b %Y %H:%M:%S} GMT"}}})
    aws.call("sts", "GetCallerIdentity")
    assert aws.ahead_seconds == pytest.approx(180, abs=5)


def product(*hourly: str) -> str:
    dimensions = {str(n): {"unit": "Hrs", "pricePerUnit": {"USD": usd}} for n, usd in enumerate(hourly)}
    return json.dumps({"terms": {"OnDemand": {"x": {"priceDimensions": dimensions}}}})


@pytest.mark.parametrize(
    ("rows", "expected", "reason"),
    [
        ([product("1.2060000000")], 1.206, "the one price"),
        ([product("0.0000000000", "1.2")], 1.2, "a reservation's hours cost nothing"),
        ([product("1.2"), product("1.2")], 1.2, "told twice"),
        ([product("1.2"), product("1.3")], None, "two prices are none"),
        ([], None, "no such type there"),
    ],
)
def test_the_full_price_is_the_one_of_the_price_list(rows: list[str], expected: float | None, reason: str) -> None:
    assert on_demand_price(Answering({"PriceList": rows}), "g5.xlarge") == expected, reason


def test_spot_prices_come_oldest_first_and_rows_without_a_price_say_nothing() -> None:
    row = {"InstanceType": "g5.xlarge", "AvailabilityZone": "a", "SpotPrice": "0.40", "Timestamp": NOON}
    bare = {"InstanceType": "g5.xlarge", "Location": "a"}
    aws = Answering({"SpotPriceHistory": [row, bare, {**row, "SpotPrice": "0.30", "Timestamp": NOON - timedelta(hours=1)}]})
    assert spot_prices(aws, ["g5.xlarge"], NOON) == [
        SpotPrice("g5.xlarge", "a", 0.3, NOON - timedelta(hours=1)),
        SpotPrice("g5.xlarge", "a", 0.4, NOON),
    ]


@pytest.mark.parametrize(
    ("kind", "full_price", "code"),
    [
        ("g5.xlarge", False, "L-3819A6DF"),
        ("g4dn.12xlarge", True, "L-DB2E81BA"),
        ("p4d.24xlarge", False, "L-7212CCBC"),
        ("p5.48xlarge", True, "L-417A185B"),
        ("p5.48xlarge", False, None),
        ("m7i.large", False, "L-34B43A08"),
        ("inf2.xlarge", False, None),
        ("trn1.2xlarge", False, None),
        ("u-6tb1.metal", False, None),
    ],
)
def test_the_quota_is_that_of_the_family(kind: str, full_price: bool, code: str | None) -> None:
    assert quota_code(kind, full_price) == code
    aws = Answering({"Quota": {"Value": 64.0}})
    assert quota_vcpus(aws, "L-1") == 64.0
    assert [sent["QuotaCode"] for _, sent in aws.requests] == ["L-1"]


def a_machine(kind: str, cores: int | None, threads: int = 2, lifecycle: str | None = "spot") -> dict[str, Any]:
    told = {} if cores is None else {"CpuOptions": {"CoreCount": cores, "ThreadsPerCore": threads}}
    return {"InstanceType": kind, **told, **({} if lifecycle is None else {"InstanceLifecycle": lifecycle})}


@pytest.mark.parametrize(
    ("rows", "full_price", "expected", "reason"),
    [
        ([], False, {}, "nothing runs"),
        ([a_machine("g5.xlarge", 2), a_machine("g6.12xlarge", 24)], False, {"L-3819A6DF": 52}, "one quota for all of a family"),
        ([a_machine("m7i.large", 1), a_machine("g5.xlarge", 2)], False, {"L-34B43A08": 2, "L-3819A6DF": 4}, "two families"),
        ([a_machine("g5.xlarge", 2, threads=1)], False, {"L-3819A6DF": 2}, "what it was started with, not what the type has"),
        ([a_machine("trn1.2xlarge", 4)], False, {}, "a family whose quota is not known here"),
        ([a_machine("g5.xlarge", None)], False, {"L-3819A6DF": 4}, "AWS does not say: what the type has"),
        ([a_machine("g5.xlarge", 2, lifecycle=None)], True, {"L-DB2E81BA": 4}, "at full price, its own quota"),
        ([a_machine("p5.48xlarge", 96, lifecycle="capacity-block")], True, {}, "bought ahead: no part of the quota"),
        ([a_machine("g5.xlarge", 2)], True, {}, "spot does not count there"),
    ],
)
def test_what_of_a_quota_is_in_use_is_counted(
    rows: list[dict[str, Any]], full_price: bool, expected: dict[str, int], reason: str
) -> None:
    sizes = {"InstanceTypes": [{"InstanceType": "g5.xlarge", "VCpuInfo": {"DefaultVCpus": 4}}]}
    aws = Answering({"Reservations": [{"Instances": [row]} for row in rows]}, sizes)
    assert vcpus_in_use(aws, full_price) == expected, reason
    _, sent = aws.requests[0]
    assert {"Name": "instance-state-name", "Values": ["pending", "running"]} in sent["Filters"]
    assert ({"Name": "instance-lifecycle", "Values": ["spot"]} in sent["Filters"]) is not full_price


def test_of_a_session_the_role_counts() -> None:
    assert role_arn("arn:aws:sts::1:assumed-role/Builder/me") == "arn:aws:iam::1:role/Builder"
    assert role_arn("arn:aws:iam::1:user/me") == "arn:aws:iam::1:user/me"


def test_a_deadline_survives_its_tag_to_the_second() -> None:
    moment = datetime.fromisoformat("2026-07-01T06:00:00+02:00")
    assert deadline_in({"nightowl:deadline": as_tag(moment)}) == moment
    assert deadline_in({"nightowl:deadline": "soon"}) is None and deadline_in({}) is None
