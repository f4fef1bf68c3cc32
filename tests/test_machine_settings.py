import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from nightowl.errors import SettingsError
from nightowl.machine_settings import MachineSettings
from nightowl.settings import as_environment, load_settings

ROOT = Path(__file__).resolve().parents[1]
ENOUGH: dict[str, Any] = {
    "region": "eu-central-1",
    "board": "s3://factory/nightowl",
    "instance_types": ["g5.12xlarge"],
    "subnets": ["subnet-1"],
    "security_group": "sg-1",
    "instance_profile": "nightowl-node",
    "image": "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
}


def test_one_node_goes_on_alone_and_the_machines_end_after_half_a_day_unless_said_otherwise() -> None:
    settings = MachineSettings.model_validate(ENOUGH)
    assert (settings.nodes, settings.fewest_nodes, settings.max_hours, settings.on_demand) == (1, 1, 12.0, "never")
    assert MachineSettings.model_validate({**ENOUGH, "nodes": 4}).fewest_nodes == 4


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"nodes": 2, "instance_types": ["g5.12xlarge", "g6.12xlarge"]}, "nodes > 1 needs one entry in instance_types"),
        ({"nodes": 2, "subnets": ["subnet-1", "subnet-2"]}, "nodes > 1 needs one entry in subnets"),
        ({"nodes": 2, "min_nodes": 3}, r"min_nodes must be <= nodes \(2\)"),
        ({"on_demand": "near_deadline"}, "needs done_by"),
        ({"environment": "baked"}, "needs python"),
        ({"environment": "container", "container": "nightowl:latest"}, "container must be NAME@sha256:DIGEST"),
        ({"max_hours": 1, "lease_minutes": 90}, "lease_minutes must be <= max_hours"),
        ({"heartbeat_old_seconds": 25}, "heartbeat_old_seconds must be >= 3"),
        ({"done_by": "25:00"}, "done_by"),
        ({"board": "/a/folder"}, "board"),
        ({"image": "ubuntu"}, "image"),
        ({"region": "Frankfurt"}, "region"),
        ({"colour": 1}, "colour"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        MachineSettings.model_validate({**ENOUGH, **change})


def test_they_are_a_table_of_the_file_and_a_variable_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{key} = {value!r}".replace("'", '"') for key, value in ENOUGH.items()]
    (tmp_path / "settings.toml").write_text("\n".join(['engine = "ec2"', "[machines]", *rows]))
    monkeypatch.setenv("NIGHTOWL_MACHINES__NODES", "2")
    settings = load_settings(tmp_path)
    assert settings.machines and (settings.engine, settings.machines.nodes) == ("ec2", 2)
    assert as_environment(settings)["NIGHTOWL_MACHINES"].startswith('{"region": "eu-central-1"')


def test_a_variable_that_is_no_json_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTOWL_MACHINES", "two of them")
    with pytest.raises(SettingsError, match=r"machines: Input should be a valid dictionary.* got 'two of them'"):
        load_settings(tmp_path)


def test_the_page_names_each_with_no_other() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/machines.md").read_text(), re.MULTILINE)
    assert listed == list(MachineSettings.model_fields)
