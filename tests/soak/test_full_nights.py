"""Whole nights at full size, as the README promises them. Minutes each: `make soak`."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.checkouts import ROOT, Checkout, clone

BCCD = ROOT.parent / "shared" / "data" / "bccd"
HOUR = 3600

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * HOUR)]


def night(checkout: Checkout, *command: str) -> str:
    """Run a night to its end with all cores, and show what it printed."""
    environment = {key: value for key, value in checkout.environment().items() if key != "OMP_NUM_THREADS"}
    done = subprocess.run(
        command, cwd=checkout.root, env=environment, capture_output=True, text=True, timeout=HOUR, check=False
    )
    print(done.stdout + done.stderr)
    assert done.returncode == 0
    return done.stdout


def champion(checkout: Checkout, detector: str) -> dict[str, object]:
    listed = json.loads(checkout.check("nightowl", "models", detector, "--json"))
    [version] = listed[detector]["versions"]
    assert version["state"] == "champion"
    record: dict[str, object] = version["record"]
    return record


def test_the_demo_ends_with_a_champion_that_finds_faults(tmp_path: Path) -> None:
    checkout = clone(tmp_path / "nightowl", tmp_path / "prefect", detector_params=None)
    printed = night(checkout, "nightowl", "demo")
    assert "demo@champion is version 1" in printed
    assert float(str(champion(checkout, "demo")["map50"])) >= 0.6


@pytest.mark.skipif(not BCCD.is_dir(), reason=f"the BCCD data set is not at {BCCD}")
def test_bccd_from_random_weights_reaches_what_the_readme_says(tmp_path: Path) -> None:
    checkout = clone(tmp_path / "nightowl", tmp_path / "prefect", detector_params=None)
    night(checkout, "nightowl", "night", "bccd", "--source", str(BCCD))
    assert float(str(champion(checkout, "bccd")["map50"])) >= 0.75
