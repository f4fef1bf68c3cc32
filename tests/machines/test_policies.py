"""The policies agree with what the code asks of AWS: no more, no less."""

import json
import re
from pathlib import Path

import pytest

from nightowl.machine_settings import MachineSettings
from nightowl.machines.policies import NAMES, policy, statements, unfilled, values_of
from tests.test_machine_settings import ENOUGH

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = MachineSettings.model_validate(ENOUGH)
PLACES = {"CACHE": "s3://factory/dvc", "CHECKPOINTS": "s3://factory/checkpoints", "SOURCE": "s3://data"}
VALUES = values_of(SETTINGS, "1234", "arn:aws:iam::1234:role/nightowl-node", PLACES)
# Asked by the AWS side on behalf of whoever creates the group, or of a node; no line of ours names them.
BY_AWS = {"ec2:RunInstances", "iam:PassRole", "ec2:DescribeLaunchTemplateVersions"}
NO_RIGHT_NEEDED = {"sts:GetCallerIdentity"}


def actions(name: str) -> set[str]:
    return {action for each in statements(policy(name, VALUES)) for action in each.actions}


def asked() -> set[str]:
    """Every action that the code calls, by its name in policies."""
    found = set()
    for path in (ROOT / "nightowl/cloud").glob("ec2*.py"):
        text = path.read_text().replace("SERVICE,", '"autoscaling",')
        for service, operation in re.findall(r'(?:call|pages)\(\s*"([\w-]+)",\s*"(\w+)"', text):
            found.add(f"{service.replace('service-quotas', 'servicequotas')}:{operation}")
        found |= {f"ec2:{operation}" for operation in re.findall(r'_unless_gone\(aws, "(\w+)"', text)}
    return found


def test_what_the_code_asks_is_in_one_of_the_policies_and_nothing_else_is() -> None:
    granted = {each for each in actions("orchestrator") | actions("node") if not each.startswith("s3:")}
    assert len(asked()) > 25
    assert granted - BY_AWS == {each for each in asked() if not each.startswith("s3:")} - NO_RIGHT_NEEDED


def test_a_reaper_may_do_nothing_that_the_orchestrator_may_not() -> None:
    assert actions("reaper") < actions("orchestrator")
    assert not [each for each in actions("reaper") if "Create" in each or "Run" in each]


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_is_json_with_nothing_left_open_but_the_repository(name: str) -> None:
    text = policy(name, VALUES)
    assert json.loads(text)["Version"] == "2012-10-17"
    assert unfilled(text) == (["REPOSITORY"] if name == "node-container" else [])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "node-trust"])
def test_what_changes_anything_is_bound_to_names_or_tags_of_ours(name: str) -> None:
    for each in statements(policy(name, VALUES)):
        changes = [action for action in each.actions if not re.search(r":(Describe|Get|List|Simulate|BatchGet)", action)]
        assert not (changes and "*" in each.resources), each


def test_a_node_may_write_what_it_tells_and_not_what_machines_execute() -> None:
    writable = [
        resource.partition("/runs/*/")[2]
        for each in statements(policy("node", VALUES))
        if "s3:PutObject" in each.actions
        for resource in each.resources
        if "/runs/" in resource
    ]
    assert {"nodes/*", "ends/*", "events/*", "logs/*", "END.json"} <= set(writable)
    assert not [each for each in writable if each.startswith(("code", "job", "wheel", "requirements", "blobs", "*"))]


def test_what_nobody_knows_stays_open_and_says_nothing() -> None:
    text = policy("node", values_of(SETTINGS, None, None, {}))
    assert unfilled(text) == [
        *("ACCOUNT", "CACHE", "CACHE_BUCKET", "CACHE_PREFIX", "CHECKPOINTS", "CHECKPOINTS_BUCKET", "CHECKPOINTS_PREFIX"),
        *("SOURCE", "SOURCE_BUCKET", "SOURCE_PREFIX"),
    ]
    assert {each.sid for each in statements(text)} == {
        *("ReadRuns", "ListRuns", "TellAboutARunButNotWhatItExecutes", "TryConditionalPuts"),
    }


def test_a_bucket_without_a_prefix_is_all_of_it() -> None:
    assert '"s3:prefix": ["dvc/*", "checkpoints/*", "*"]' in policy("node", VALUES)
    assert "arn:aws:s3:::data/*" in policy("node", VALUES)


def test_an_image_that_is_named_by_its_id_needs_no_parameter() -> None:
    settings = SETTINGS.model_copy(update={"image": "ami-1"})
    sids = {each.sid for each in statements(policy("orchestrator", values_of(settings, "1", "arn", {})))}
    assert "TheImage" not in sids and "MakeTemplates" in sids
