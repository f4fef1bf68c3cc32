"""`prefect deployment run nightly/demo` against a real server and a process worker, both on loopback."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import httpx

from nightowl.boards import generate
from tests.end_to_end.checkouts import clone
from tests.end_to_end.servers import running, until

RUN_SECONDS = 300
OVER = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


def ended(api: str) -> list[tuple[str, str]]:
    """Type and name of the final states of the runs that a deployment started."""
    runs = httpx.post(f"{api}/flow_runs/filter", json={"deployments": {"operator": "and_"}}, timeout=10).json()
    return [(run["state_type"], run["state_name"]) for run in runs if run["deployment_id"] and run["state_type"] in OVER]


def test_a_deployment_runs_a_night_on_a_worker(tmp_path: Path, prefect_home: Path, api: str) -> None:
    checkout = replace(clone(tmp_path / "nightowl", prefect_home), api=api)
    generate(tmp_path / "boards", num_images=48)
    source = {"NIGHTOWL_SOURCES__DEMO": str(tmp_path / "boards")}
    for pool in ("nightowl", "gpu"):
        checkout.check("prefect", "work-pool", "create", pool, "--type", "process")
    checkout.check("prefect", "--no-prompt", "deploy", "--all")
    log, worker = (
        tmp_path / "worker.log",
        [str(Path(sys.executable).with_name("prefect")), "worker", "start", "--pool", "nightowl"],
    )
    with running(worker, checkout.root, checkout.environment(**source), log):
        checkout.check("prefect", "deployment", "run", "nightly/demo")
        until(RUN_SECONDS, lambda: bool(ended(api)), log)
    assert ended(api) == [("COMPLETED", "Promoted")], log.read_text()[-6000:]
    listed = json.loads(checkout.check("nightowl", "models", "demo", "--json"))
    assert [(entry["version"], entry["state"]) for entry in listed["demo"]["versions"]] == [("1", "champion")]
