"""`prefect deployment run` of a night and of an engine, against a real server and process workers, all on loopback."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import httpx

from nightowl.boards import generate
from nightowl.export.onnx import export_onnx
from tests.bundles import Made, new_registry, registered
from tests.end_to_end.checkouts import Checkout, clone
from tests.end_to_end.servers import running, until
from tests.export.stand_in_gpu import GPU, KEY
from tests.tiny import tiny_card, tiny_module

RUN_SECONDS = 300
OVER = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


def ended(api: str, deployment: str) -> list[tuple[str, str]]:
    """Type and name of the final states of the runs that the deployment started."""
    runs = httpx.post(f"{api}/flow_runs/filter", json={"deployments": {"name": {"any_": [deployment]}}}, timeout=10).json()
    return [(run["state_type"], run["state_name"]) for run in runs if run["state_type"] in OVER]


def worker(pool: str) -> list[str]:
    return [str(Path(sys.executable).with_name("prefect")), "worker", "start", "--pool", pool]


def make_pool(checkout: Checkout, name: str) -> None:
    """Another test may have made it on the same server."""
    checkout.check("prefect", "work-pool", "create", name, "--type", "process", "--overwrite")


def deploy_all(checkout: Checkout) -> None:
    """Every deployment of prefect.yaml, and the pools that they name."""
    for pool in ("nightowl", "gpu"):
        make_pool(checkout, pool)
    checkout.check("prefect", "--no-prompt", "deploy", "--all")


def test_a_deployment_runs_a_night_on_a_worker(tmp_path: Path, prefect_home: Path, api: str) -> None:
    checkout = replace(clone(tmp_path / "nightowl", prefect_home), api=api)
    generate(tmp_path / "boards", num_images=48)
    source = {"NIGHTOWL_SOURCES__DEMO": str(tmp_path / "boards")}
    deploy_all(checkout)
    log = tmp_path / "worker.log"
    with running(worker("nightowl"), checkout.root, checkout.environment(**source), log):
        checkout.check("prefect", "deployment", "run", "nightly/demo")
        until(RUN_SECONDS, lambda: bool(ended(api, "demo")), log)
    assert ended(api, "demo") == [("COMPLETED", "Promoted")], log.read_text()[-6000:]
    listed = json.loads(checkout.check("nightowl", "models", "demo", "--json"))
    assert [(entry["version"], entry["state"]) for entry in listed["demo"]["versions"]] == [("1", "champion")]


def test_the_worker_of_the_pool_gpu_builds_the_engine_of_its_own_kind_of_machine(
    tmp_path: Path, prefect_home: Path, api: str
) -> None:
    checkout = replace(clone(tmp_path / "nightowl", prefect_home), api=api)
    export_onnx(tiny_module(), tiny_card(), 17, tmp_path / "model.onnx")
    registry = new_registry(checkout.root / ".nightowl")
    registered(registry, tmp_path, Made(onnx=(tmp_path / "model.onnx").read_bytes()))
    make_pool(checkout, "gpu")
    checkout.check("prefect", "--no-prompt", "deploy", "--name", "gpu")
    on_a_gpu = os.pathsep.join([str(checkout.root / "tests" / "export" / "on_a_gpu"), str(checkout.root)])
    log = tmp_path / "worker.log"
    with running(worker("gpu"), checkout.root, checkout.environment(PYTHONPATH=on_a_gpu), log):
        checkout.check("prefect", "deployment", "run", "engine/gpu", "--param", "detector=demo", "--param", 'version="1"')
        until(RUN_SECONDS, lambda: bool(ended(api, "gpu")), log)
    assert ended(api, "gpu") == [("COMPLETED", "Completed")], log.read_text()[-6000:]
    assert f"demo version 1: engine for {GPU}, held against the ONNX on coloured patches alone" in log.read_text()
    (line,) = checkout.check("nightowl", "engine", "list", "demo").splitlines()
    assert line.split("\t")[:4] == ["demo", "1", GPU, KEY]
