"""`nightowl machines`, on an account in moto."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nightowl.cli import app
from nightowl.cloud.ec2_session import Aws
from nightowl.errors import StageFailed
from nightowl.machines.reaper import reap
from nightowl.machines.spot import SpotEngine
from nightowl.machines.spot_site import RentedMachines
from nightowl.settings import Settings
from tasks.reaping import reap_overdue
from tests.machines.spot.account import RUN, Account, client, job
from tests.machines.spot.test_preflight import ANSWERS
from tests.machines.spot.test_reaper import lone


@pytest.fixture(autouse=True)
def here(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of the account, and answers where moto has none."""
    call = Aws.call

    def told(self: Aws, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        return ANSWERS[operation] if operation in ANSWERS else call(self, service, operation, **arguments)

    monkeypatch.setattr(Aws, "call", told)
    monkeypatch.setattr(reap, "__defaults__", (lambda seconds: None,))  # no waiting between two looks
    monkeypatch.setenv("NIGHTOWL_MACHINES", account.settings.model_dump_json(exclude_none=True))


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["machines", *words], env={"COLUMNS": "200"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_list_shows_each_machine_with_its_age_and_end(account: Account) -> None:
    assert run("list") == (0, "0 machines in eu-central-1\n")
    account.engine().submit(job())
    (machine,) = account.instances()
    code, said = run("list")
    assert code == 0 and machine in said and RUN in said and "2026-07-01 12:30" in said
    assert said.endswith("1 machines in eu-central-1\n")


def forgotten(account: Account) -> None:
    """A run of years ago that AWS did not end."""
    then = Account(account.settings, account.boards, account.now.replace(year=2020))
    then.engine().submit(job(deadline=then.now + timedelta(minutes=10)))


def test_reap_ends_what_is_late_and_says_what_it_cannot_judge(account: Account) -> None:
    forgotten(account)
    stray = lone(account, {"nightowl:project": "nightowl"})
    code, said = run("reap", "--dry-run")
    assert code == 0 and f"{RUN}: past its deadline 2020-07-01 12:10 UTC: 1 machines" in said
    assert len(account.instances()) == 2
    client("ec2").terminate_instances(InstanceIds=account.instances(RUN))
    code, said = run("reap")
    assert code == 1 and "1 runs reaped, 0 within their time, 1 unclear" in said
    assert account.instances() == [stray]


def test_check_says_what_is_fine_and_ends_with_one_where_something_is_not(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ANSWERS, "GetServiceQuota", {"Quota": {"Value": 64.0}})
    code, said = run("check")
    assert "fine     quota: enough spot vCPUs" in said and code == (1 if "wrong " in said else 0)
    monkeypatch.setitem(ANSWERS, "GetServiceQuota", {"Quota": {"Value": 0.0}})
    code, said = run("check")
    assert code == 1 and "wrong    quota: 1 x g5.xlarge need 4 spot vCPUs" in said


def test_policies_are_written_with_what_is_known(account: Account, tmp_path: Path) -> None:
    code, said = run("policies", "--out", str(tmp_path))
    assert code == 0 and f"{tmp_path}/node.json   fill in: " in said
    text = (tmp_path / "orchestrator.json").read_text()
    assert json.loads(text) and "123456789012" in text and "factory/nightowl/*" in text and "${" not in text


def test_the_engine_opens_by_the_settings_alone(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the user-data that nodes really get, the board in S3, and the preflight before anything is created."""
    settings = Settings(engine="ec2", machines=account.settings, checkpoints="s3://factory/checkpoints")
    engine = RentedMachines(settings).engine()
    assert isinstance(engine, SpotEngine)
    engine._now = lambda: account.now
    engine.submit(job())
    assert len(account.instances(RUN)) == 1 and engine.status(RUN).state == "waiting"
    keys = [row["Key"] for row in client("s3").list_objects_v2(Bucket="factory")["Contents"]]
    assert f"nightowl/runs/{RUN}/job.json" in keys
    engine._sleep = lambda seconds: None
    assert engine.tear_down(RUN).nothing
    client("s3").delete_objects(Bucket="factory", Delete={"Objects": [{"Key": key} for key in keys]})


def test_the_flow_of_every_hour_reaps_and_fails_where_something_is_unclear(account: Account) -> None:
    forgotten(account)
    (said,) = reap_overdue.fn()
    assert said.startswith(f"{RUN}: past its deadline 2020-07-01 12:10 UTC: ") and account.empty()
    stray = lone(account, {"nightowl:project": "nightowl"})
    with pytest.raises(StageFailed, match=f"{stray}: our tag but no deadline"):
        reap_overdue.fn()
