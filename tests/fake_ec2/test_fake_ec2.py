"""The fake keeps to what AWS does, as far as our code rests on it."""

import base64
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from nightowl.cloud.ec2_prices import on_demand_price
from nightowl.cloud.ec2_session import Aws
from tests.fake_ec2.cloud import FakeEC2
from tests.fake_ec2.namespaces import namespaces_permitted

pytestmark = pytest.mark.timeout(60)
HELLO = """#!/bin/bash
imds=$AWS_EC2_METADATA_SERVICE_ENDPOINT/latest
token=$(curl -s -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' $imds/api/token)
echo "I am $(curl -s -H "X-aws-ec2-metadata-token: $token" $imds/meta-data/instance-id)"
echo "API $(curl -s -o /dev/null -w '%{http_code}' $AWS_ENDPOINT_URL/)"
sleep 600
"""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeEC2]:
    with FakeEC2(tmp_path_factory.mktemp("cloud")) as running:
        yield running


@pytest.fixture
def group(cloud: FakeEC2) -> Iterator[str]:
    """A group of no members, whose template runs HELLO; gone afterwards, with all of its members."""
    name = f"g{time.monotonic_ns()}"
    yield make_group(cloud, name, HELLO)
    cloud.limit("*", None)
    if cloud.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]:
        cloud.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
    cloud.wait(lambda: not cloud.instances)


def make_group(cloud: FakeEC2, name: str, user_data: str, **more: Any) -> str:
    data = {
        "ImageId": "ami-12c6146b",
        "UserData": base64.b64encode(user_data.encode()).decode(),
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {"HttpTokens": "required", "InstanceMetadataTags": "enabled"},
        **more,
    }
    cloud.client("ec2").create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data, ClientToken=name)
    cloud.client("autoscaling").create_auto_scaling_group(**group_request(cloud, name))
    return name


def group_request(cloud: FakeEC2, name: str) -> dict[str, Any]:
    subnet = cloud.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    template = {
        "LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"},
        "Overrides": [{"InstanceType": "g5.xlarge"}],
    }
    return {
        "AutoScalingGroupName": name,
        "MinSize": 0,
        "MaxSize": 2,
        "DesiredCapacity": 0,
        "VPCZoneIdentifier": subnet,
        "MixedInstancesPolicy": {
            "LaunchTemplate": template,
            "InstancesDistribution": {
                "OnDemandPercentageAboveBaseCapacity": 0,
                "SpotAllocationStrategy": "price-capacity-optimized",
            },
        },
        "Tags": [{"Key": "nightowl:run", "Value": name, "PropagateAtLaunch": True}],
    }


def raised(cloud: FakeEC2, group: str, number: int) -> list[str]:
    cloud.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=number)
    cloud.wait(lambda: len(cloud.instances) == number)
    return cloud.alive()


def alive(processes: list[int]) -> list[int]:
    """Those that run; one that nobody has waited for yet does not."""
    return [each for each in processes if Path(f"/proc/{each}/cmdline").exists() and Path(f"/proc/{each}/cmdline").read_bytes()]


def code_of(error: "pytest.ExceptionInfo[ClientError]") -> str:
    return str(error.value.response["Error"]["Code"])


def test_an_instance_runs_its_user_data_and_reaches_metadata_and_api(cloud: FakeEC2, group: str) -> None:
    (name,) = raised(cloud, group, 1)
    instance = cloud.instances[name]
    cloud.wait(lambda: "API 200" in instance.console, 20)
    assert f"I am {name}" in instance.console
    assert instance.facts.lifecycle == "spot"
    assert instance.facts.tags == {"nightowl:run": group}
    assert cloud.tagged("nightowl:run", group) == [name, group]


def test_metadata_is_version_2_only(cloud: FakeEC2, group: str) -> None:
    (name,) = raised(cloud, group, 1)
    metadata = cloud.instances[name].metadata
    assert metadata.answer("GET", "/latest/meta-data/instance-id", {})[0] == 401
    assert metadata.answer("PUT", "/latest/api/token", {})[0] == 400
    status, token = metadata.answer("PUT", "/latest/api/token", {"HTTP_X_AWS_EC2_METADATA_TOKEN_TTL_SECONDS": "60"})
    told = {"HTTP_X_AWS_EC2_METADATA_TOKEN": token}
    assert status == 200
    assert metadata.answer("GET", "/latest/meta-data/spot/instance-action", told)[0] == 404
    cloud.interrupt(name, seconds=60)
    notice = json.loads(metadata.answer("GET", "/latest/meta-data/spot/instance-action", told)[1])
    assert notice["action"] == "terminate"
    assert metadata.answer("GET", "/latest/meta-data/events/recommendations/rebalance", told)[0] == 404
    cloud.rebalance(name)
    assert metadata.answer("GET", "/latest/meta-data/events/recommendations/rebalance", told)[0] == 200
    assert metadata.answer("GET", "/latest/meta-data/tags/instance/nightowl:run", told) == (200, group)


def test_an_interrupted_instance_ends_with_all_its_processes_and_is_replaced(cloud: FakeEC2, group: str) -> None:
    (name,) = raised(cloud, group, 1)
    instance = cloud.instances[name]
    cloud.wait(instance.host.processes, 10)
    processes = instance.host.processes()
    cloud.interrupt(name, seconds=0.3)
    cloud.wait(lambda: name in cloud.ended and len(cloud.instances) == 1, 20)
    assert not alive(processes)
    assert name not in cloud.alive()


def test_a_killed_instance_is_replaced_too(cloud: FakeEC2, group: str) -> None:
    (name,) = raised(cloud, group, 1)
    cloud.kill(name)
    cloud.wait(lambda: cloud.alive() and cloud.alive() != [name], 10)


@pytest.mark.skipif(not namespaces_permitted(), reason="no network namespaces here: instances are processes on 127.0.0.x")
def test_instances_reach_one_another_until_the_link_is_cut(tmp_path: Path) -> None:
    listen = 'python3 -m http.server -b "$(hostname -I | tr " " "\\n" | grep 172)" 8000 & sleep 600'
    with FakeEC2(tmp_path) as cloud:
        first, second = raised(cloud, make_group(cloud, "pair", listen), 2)
        one, other = cloud.instances[first], cloud.instances[second]
        fetch = f"curl -s -m 1 -o /dev/null http://{other.facts.address}:8000/ && echo reached"

        def reached() -> bool:
            command = ["ip", "netns", "exec", one.host._name, "bash", "-c", fetch]  # type: ignore[attr-defined]
            return "reached" in subprocess.run(command, capture_output=True, text=True).stdout

        cloud.wait(reached, 20)
        cloud.cut(second)
        assert not reached()
        cloud.mend(second)
        cloud.wait(reached, 10)


def test_a_shutdown_from_inside_ends_it_as_its_template_says(tmp_path: Path) -> None:
    with FakeEC2(tmp_path) as cloud:
        make_group(cloud, "ends", "shutdown -h +500; shutdown -c; shutdown -h now; sleep 600")
        (name,) = raised(cloud, "ends", 1)
        cloud.wait(lambda: name in cloud.ended, 20)
        cloud.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName="ends", ForceDelete=True)
        make_group(cloud, "stops", "poweroff; sleep 600", InstanceInitiatedShutdownBehavior="stop")
        cloud.client("autoscaling").set_desired_capacity(AutoScalingGroupName="stops", DesiredCapacity=1)
        cloud.wait(lambda: stopped(cloud), 20)


def stopped(cloud: FakeEC2) -> list[Any]:
    states = [{"Name": "instance-state-name", "Values": ["stopped"]}]
    found: list[Any] = cloud.client("ec2").describe_instances(Filters=states)["Reservations"]
    return found


def test_a_scheduled_action_fires_when_aws_clock_says_so(cloud: FakeEC2, group: str) -> None:
    raised(cloud, group, 2)
    scaling, name = cloud.client("autoscaling"), f"end-{group}"
    end = {"AutoScalingGroupName": group, "ScheduledActionName": name, "MinSize": 0, "MaxSize": 0, "DesiredCapacity": 0}
    with pytest.raises(ClientError) as refused:
        scaling.put_scheduled_update_group_action(StartTime=datetime.now(UTC) - timedelta(seconds=9), **end)
    assert code_of(refused) == "ValidationError"
    scaling.put_scheduled_update_group_action(StartTime=cloud.now() + timedelta(hours=1), **end)
    time.sleep(0.5)
    assert len(cloud.alive()) == 2
    cloud.advance(3601)
    cloud.wait(lambda: not cloud.alive() and not cloud.instances, 10)
    assert cloud.fired[-1] == name


def test_capacity_that_runs_out_is_a_failed_activity_and_comes_back(cloud: FakeEC2, group: str) -> None:
    cloud.limit("g5.xlarge", 1)
    scaling = cloud.client("autoscaling")
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=2)
    cloud.wait(lambda: len(cloud.instances) == 1, 10)
    activities = scaling.describe_scaling_activities(AutoScalingGroupName=group)["Activities"]
    assert "sufficient g5.xlarge capacity" in activities[0]["StatusMessage"]
    assert activities[0]["StatusCode"] == "Failed"
    with pytest.raises(ClientError) as refused:
        cloud.client("ec2").run_instances(ImageId="ami-12c6146b", InstanceType="g5.xlarge", MinCount=1, MaxCount=1)
    assert code_of(refused) == "InsufficientInstanceCapacity"
    cloud.limit("g5.xlarge", None)
    cloud.wait(lambda: len(cloud.instances) == 2, 10)


def test_the_same_client_token_gives_the_same_answer_and_another_request_is_refused(cloud: FakeEC2) -> None:
    ec2, data = cloud.client("ec2"), {"ImageId": "ami-12c6146b"}
    ask = {"LaunchTemplateName": "twice", "ClientToken": "token-1"}
    first, second = (ec2.create_launch_template(LaunchTemplateData=data, **ask)["LaunchTemplate"] for _ in range(2))
    assert first["LaunchTemplateId"] == second["LaunchTemplateId"]
    with pytest.raises(ClientError) as refused:
        ec2.create_launch_template(LaunchTemplateData={"ImageId": "ami-785db401"}, **ask)
    assert code_of(refused) == "IdempotentParameterMismatch"


def test_groups_are_refused_as_aws_refuses_them(cloud: FakeEC2, group: str) -> None:
    scaling = cloud.client("autoscaling")
    with pytest.raises(ClientError) as taken:
        scaling.create_auto_scaling_group(**group_request(cloud, group))
    assert code_of(taken) == "AlreadyExists"
    with pytest.raises(ClientError) as above:
        scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=3)
    assert code_of(above) == "ValidationError"
    raised(cloud, group, 1)
    with pytest.raises(ClientError) as in_use:
        scaling.delete_auto_scaling_group(AutoScalingGroupName=group)
    assert code_of(in_use) == "ResourceInUse"
    with pytest.raises(ClientError) as no_member:
        scaling.terminate_instance_in_auto_scaling_group(InstanceId="i-0", ShouldDecrementDesiredCapacity=True)
    assert code_of(no_member) == "ValidationError"


@pytest.mark.parametrize(
    ("service", "ask", "code"),
    [("ec2", "describe_instances", "RequestLimitExceeded"), ("autoscaling", "describe_auto_scaling_groups", "Throttling")],
)
def test_throttling_is_worded_as_the_service_words_it_and_ends(cloud: FakeEC2, service: str, ask: str, code: str) -> None:
    client = cloud.client(service)
    cloud.throttle("".join(word.title() for word in ask.split("_")), 1)
    with pytest.raises(ClientError) as refused:
        getattr(client, ask)()
    assert code_of(refused) == code
    getattr(client, ask)()


def test_the_price_list_has_one_price_of_a_machine_and_none_of_what_it_does_not_hold(cloud: FakeEC2) -> None:
    aws = Aws("us-east-1", cloud.endpoint)
    with cloud.speaking():
        assert on_demand_price(aws, "g5.xlarge") == 1.006
        assert on_demand_price(aws, "p9.huge") is None
        assert on_demand_price(Aws("eu-central-1", cloud.endpoint), "g5.xlarge") is None


def test_an_object_is_put_once_if_absent(cloud: FakeEC2) -> None:
    store = cloud.client("s3")
    store.create_bucket(Bucket="fake-once")
    store.put_object(Bucket="fake-once", Key="a", Body=b"1", IfNoneMatch="*")
    with pytest.raises(ClientError) as refused:
        store.put_object(Bucket="fake-once", Key="a", Body=b"2", IfNoneMatch="*")
    assert code_of(refused) == "PreconditionFailed"


def test_boot_takes_its_time(tmp_path: Path) -> None:
    with FakeEC2(tmp_path, boot_seconds=1.0) as cloud:
        began = time.monotonic()
        (name,) = raised(cloud, make_group(cloud, "slow", "echo up; sleep 600"), 1)
        cloud.wait(lambda: "up" in cloud.instances[name].console, 10)
        assert time.monotonic() - began >= 1.0


def test_without_namespaces_the_same_runs_as_processes_on_loopback(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with FakeEC2(tmp_path, isolated=False) as cloud:
        (name,) = raised(cloud, make_group(cloud, "plain", HELLO.replace("sleep", "(setsid sleep 601 &)\nsleep")), 1)
        instance = cloud.instances[name]
        cloud.wait(lambda: "API 200" in instance.console, 20)
        assert instance.facts.address.startswith("127.0.0.")
        processes = instance.host.processes()
        assert len(processes) == 3
        cloud.kill(name)
        assert not alive(processes)
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(instance.metadata_endpoint, timeout=2)
    assert "NO ISOLATION" in capfd.readouterr().err
