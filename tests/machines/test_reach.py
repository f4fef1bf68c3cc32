import configparser
from pathlib import Path

import pytest

from nightowl.cloud.dvc_config import DvcConfig, read_config
from nightowl.errors import DataError, SettingsError
from nightowl.machine_settings import MachineSettings
from nightowl.machines.reach import cache_config, machines_of, settings_there, source_there
from nightowl.settings import Settings
from tests.cloud.tracked import config

ROOT = Path("/srv/line")
MACHINES = MachineSettings(
    region="eu-central-1",
    board="s3://lines/nightowl",
    instance_types=("g5.xlarge",),
    subnets=("subnet-1",),
    security_group="sg-1",
    instance_profile="node",
    image="ami-1",
)


@pytest.mark.parametrize(
    ("source", "there", "reason"),
    [
        ("s3://data/line", "s3://data/line", "an address is one anywhere"),
        ("dvc:/srv/line/images", "dvc:images", "what this checkout tracks is named from its top"),
    ],
)
def test_what_a_node_calls_the_source(source: str, there: str, reason: str) -> None:
    assert source_there(ROOT, "bccd", source) == there, reason


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("/data/bccd", "bccd: its data lies in the folder /data/bccd, which rented machines cannot read: put it into S3"),
        ("dvc:/srv/other/images", "is tracked by another checkout than /srv/line"),
    ],
)
def test_what_only_this_machine_can_read_is_refused(source: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        source_there(ROOT, "bccd", source)


def test_the_cache_is_told_without_who_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DVC_GLOBAL_CONFIG_DIR", str(tmp_path / "none"))
    text = "[core]\n    remote = store\n[cache]\n    dir = /mnt/cache\n['remote \"store\"']\n    url = s3://lines/dvc\n"
    config(tmp_path, text + "    region = eu-west-1\n['remote \"usb\"']\n    url = /mnt/usb\n")
    who = "    access_key_id = AKIA\n    secret_access_key = hush\n    profile = boss\n    session_token = t\n"
    config(tmp_path, "['remote \"store\"']\n" + who, "config.local")
    told = cache_config(read_config(tmp_path)).decode()
    parsed = configparser.ConfigParser()
    parsed.read_string(told)
    assert dict(parsed["core"]) == {
        "remote": "store",
        "analytics": "false",
        "check_update": "false",
        "autostage": "false",
        "no_scm": "true",
    }
    assert dict(parsed["'remote \"store\"'"]) == {"url": "s3://lines/dvc", "region": "eu-west-1"}
    assert parsed.sections() == ["core", "'remote \"store\"'"], "no folder of this machine, neither cache nor remote"


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({}, "no default remote here: dvc remote default NAME"),
        ({"core": {"remote": "usb"}, 'remote "usb"': {"url": "/mnt/usb"}}, "its DVC remote /mnt/usb is not in S3"),
    ],
)
def test_a_cache_that_nodes_cannot_share_is_refused(sections: dict[str, dict[str, str]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        cache_config(DvcConfig(ROOT, sections))


def test_nodes_are_told_addresses_and_what_holds_everywhere_and_no_folder_of_ours() -> None:
    settings = Settings(
        home=Path("/home/me/.nightowl"),
        sources={"bccd": "/data", "other": "/more"},
        checkpoints="/var/checkpoints",
        checkpoint_every_seconds=30,
        registry_uri="http://registry",
        machines=MACHINES,
        engine="ec2",
    )
    told = settings_there(settings, "bccd", "s3://data/bccd")
    assert told["NIGHTOWL_SOURCES"] == '{"bccd": "s3://data/bccd"}'
    assert told["NIGHTOWL_CHECKPOINTS"] == "s3://lines/nightowl/checkpoints"
    assert told["NIGHTOWL_CHECKPOINT_EVERY_SECONDS"] == "30.0"
    assert told["NIGHTOWL_ALLOW_DOWNLOADS"] == "false"
    unheard_of = {"HOME", "REGISTRY_URI", "MACHINES", "ENGINE", "NPROC", "S3_ENDPOINT", "TENSORBOARD"}
    assert not {f"NIGHTOWL_{name}" for name in unheard_of} & set(told)


def test_checkpoints_in_s3_are_the_same_there() -> None:
    told = settings_there(Settings(checkpoints="s3://lines/ck", machines=MACHINES), "bccd", "s3://d/b")
    assert told["NIGHTOWL_CHECKPOINTS"] == "s3://lines/ck"


def test_the_engine_ec2_without_machines_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"needs the table \[machines\] in settings.toml"):
        machines_of(Settings(engine="ec2"))
