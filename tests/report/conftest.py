from pathlib import Path

import pytest

from nightowl.report.content import ReportContent
from nightowl.stages.workspace import Workspace
from tests.report.sample import endings, make_workspace


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A checkout in which a whole night has run; read only."""
    return make_workspace(tmp_path_factory.mktemp("night") / "checkout")


@pytest.fixture(scope="session")
def contents(finished: Workspace) -> dict[str, ReportContent]:
    """A content for each way a night can end."""
    return endings(finished)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A finished night of its own, to take things away from."""
    return make_workspace(tmp_path / "checkout", num_test=4, size=128)
