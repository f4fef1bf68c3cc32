"""Real data that is not committed: tests that need it are skipped, loudly, where it is absent."""

from pathlib import Path

import pytest

from nightowl.params import DataParams, load_params

ROOT = Path(__file__).parents[2]
BCCD = ROOT.parent / "shared" / "data" / "bccd"


@pytest.fixture
def bccd() -> Path:
    """The folder of the BCCD data set."""
    if not BCCD.is_dir():
        pytest.skip(f"the BCCD data set is not at {BCCD}: nothing was tested on real data")
    return BCCD


@pytest.fixture
def bccd_params() -> DataParams:
    return load_params(ROOT, "bccd").data
