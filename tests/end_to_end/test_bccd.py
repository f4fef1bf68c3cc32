"""Real photographs through a whole night, for three epochs: what three epochs learn is no matter, that all parts fit is."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.end_to_end.checkouts import ROOT, clone

BCCD = ROOT.parent / "shared" / "data" / "bccd"
SMALL = {"image_size: 192": "image_size: 96", "epochs: 36": "epochs: 3", "close_mosaic_epochs: 6": "close_mosaic_epochs: 1"}


@pytest.mark.skipif(not BCCD.is_dir(), reason=f"the BCCD data set is not at {BCCD}")
def test_three_epochs_of_bccd_make_a_champion(tmp_path: Path, prefect_home: Path, api: str) -> None:
    checkout = replace(clone(tmp_path / "nightowl", prefect_home), api=api)
    params = (checkout.root / "detectors/bccd/params.yaml").read_text()
    for committed, small in SMALL.items():
        assert committed in params
        params = params.replace(committed, small)
    checkout.commit("detectors/bccd/params.yaml", params.replace("min_map50: 0.75", "min_map50: 0.0"))
    printed = checkout.check("nightowl", "night", "bccd", "--source", str(BCCD))
    assert "205 train, 87 val, 72 test" in printed
    history = next(checkout.root.glob(".nightowl/registry/artifacts/**/results.csv")).read_text()
    assert len(history.splitlines()) == 1 + 3
    [version] = json.loads(checkout.check("nightowl", "models", "bccd", "--json"))["bccd"]["versions"]
    assert version["state"] == "champion"
    assert version["record"]["classes"] == ["RBC", "WBC", "Platelets"]
    assert version["record"]["parity_passed"]
    assert checkout.check("git", "status", "--porcelain") == ""
