"""A whole night whose stages run on rented machines of the fake EC2: by the command, by Ctrl-C, and by a Prefect deployment."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from nightowl.boards import generate
from tests.end_to_end.checkouts import Checkout, clone
from tests.end_to_end.servers import running, until
from tests.end_to_end.test_deployment import RUN_SECONDS, deploy_all, ended, worker
from tests.end_to_end.test_interrupt import flow_of, rest_of, until_line
from tests.fake_ec2.cloud import FakeEC2
from tests.fake_ec2.world import World, a_world, settings_text

NIGHT_SECONDS = 600  # its machine, AWS, Prefect's server and the night itself share the two cores of this computer
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@dataclass(frozen=True)
class Rented:
    """A checkout that sends its stages to machines, and what it needs in its environment."""

    checkout: Checkout
    world: World

    @property
    def there(self) -> dict[str, str]:
        return self.world.cloud.environment()

    def remains(self) -> list[str]:
        return self.world.cloud.tagged("nightowl:project", "nightowl")


@pytest.fixture
def rented(tmp_path: Path, prefect_home: Path) -> Iterator[Rented]:
    with FakeEC2(tmp_path / "cloud") as cloud:
        world = a_world(cloud)
        checkout = replace(clone(tmp_path / "nightowl", prefect_home), night_seconds=NIGHT_SECONDS)
        remote = f"\n['remote \"shared\"']\n    url = s3://{world.bucket}/dvc\n    endpointurl = {cloud.endpoint}\n"
        config = (checkout.root / ".dvc" / "config").read_text().replace("[core]\n", "[core]\n    remote = shared\n")
        checkout.commit(".dvc/config", config + remote)
        (checkout.root / "settings.toml").write_text(settings_text(world))
        generate(tmp_path / "boards", num_images=24)
        for path in (tmp_path / "boards").rglob("*"):
            if path.is_file():
                key = f"boards/{path.relative_to(tmp_path / 'boards').as_posix()}"
                cloud.client("s3").upload_file(str(path), world.bucket, key)
        yield Rented(checkout, world)


def test_nights_on_machines_ship_what_was_made_there_and_leave_none(rented: Rented) -> None:
    checkout, world = rented.checkout, rented.world
    refused = checkout.run("nightowl", "night", "demo", "--source", str(checkout.root / "detectors"), **rented.there)
    assert refused.returncode == 2 and "which rented machines cannot read" in refused.stderr
    assert world.cloud.instances == {} and "DescribeAutoScalingGroups" not in {call.action for call in world.cloud.calls}
    source = ("--source", f"s3://{world.bucket}/boards")
    printed = checkout.check("nightowl", "night", "demo", *source, **rented.there)
    assert "asking for 1 node(s) for prepare, train, evaluate, export" in printed
    assert "train: done" in printed and "train@demo: restored from the cache" in printed and "gate@demo: done" in printed
    assert "demo@champion is version 1" in printed and "machine hours" in printed
    assert rented.remains() == [] and world.cloud.alive() == []
    (page,) = (checkout.root / ".nightowl" / "nights" / "demo").glob("*/report.html")
    assert "Rented machines" in page.read_text()
    (account,) = (checkout.root / ".nightowl" / "nights" / "demo").glob("*/machines.json")
    assert json.loads(account.read_text())["goodput"]["num_machines"] == 1
    judged = checkout.check("nightowl", "retrain", "demo", **rented.there)
    assert "asking for 1 node(s)" in judged and len(world.cloud.ended) == 2, "there is a champion to be judged against now"
    assert "demo@champion is version" in judged and rented.remains() == []
    for known in (checkout.root / ".nightowl", checkout.root / ".dvc" / "cache"):
        shutil.rmtree(known)
    again = checkout.check("nightowl", "night", "demo", *source, **rented.there)
    assert "taking it up" in again and len(world.cloud.ended) == 2, "what is done needs no machine, whoever asks"
    assert "train@demo: restored from the cache" in again and "demo@champion is version 1" in again


def test_ctrl_c_ends_the_machines_and_the_same_command_goes_on(rented: Rented) -> None:
    source = ("--source", f"s3://{rented.world.bucket}/boards")
    night = started(rented, "nightowl", "night", "demo", *source)
    until_line(night, r".*: running; 1 node")
    os.kill(flow_of(rented.checkout), signal.SIGINT)
    said = rest_of(night)
    assert night.wait(120) == 130, said
    assert "cancelled; its nodes save what they have" in said
    assert rented.remains() == [] and rented.world.cloud.alive() == []
    assert "demo@champion is version 1" in rented.checkout.check("nightowl", "night", "demo", *source, **rented.there)
    assert rented.remains() == []


def test_a_deployment_uses_machines_and_a_cancel_ends_them(rented: Rented, api: str, tmp_path: Path) -> None:
    checkout, log = replace(rented.checkout, api=api), tmp_path / "worker.log"
    sources = {"NIGHTOWL_SOURCES__DEMO": f"s3://{rented.world.bucket}/boards", **rented.there}
    deploy_all(checkout)
    with running(worker("nightowl"), checkout.root, checkout.environment(**sources), log):
        checkout.check("prefect", "deployment", "run", "retrain/demo")
        until(RUN_SECONDS, lambda: bool(rented.world.cloud.instances), log)
        (run,) = httpx.post(f"{api}/flow_runs/filter", json={"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}}).json()
        checkout.check("prefect", "flow-run", "cancel", run["id"])
        until(RUN_SECONDS, lambda: not rented.world.cloud.alive() and not rented.remains(), log)
        until(
            RUN_SECONDS, lambda: "CANCELLED" in [state for state, _ in ended(api, "demo")], log
        )  # or it holds the night's lock
        checkout.check("prefect", "deployment", "run", "nightly/demo")
        until(2 * RUN_SECONDS, lambda: ("COMPLETED", "Promoted") in ended(api, "demo"), log)
    assert rented.remains() == [] and rented.world.cloud.alive() == []


def started(rented: Rented, *command: str) -> "subprocess.Popen[str]":
    """The command, in a session of its own, its output and errors in one pipe."""
    return subprocess.Popen(
        command,
        cwd=rented.checkout.root,
        env=rented.checkout.environment(**rented.there),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
