from pathlib import Path

import pytest

from tests.end_to_end.checkouts import Checkout, clone


@pytest.fixture(scope="session")
def prefect_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One Prefect home for the session: making its database takes longer than a small night."""
    return tmp_path_factory.mktemp("prefect")


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory, prefect_home: Path) -> Checkout:
    """A clone in which no night has run."""
    return clone(tmp_path_factory.mktemp("clone") / "nightowl", prefect_home)


@pytest.fixture(scope="session")
def first_night(checkout: Checkout) -> str:
    """What the first small night of the demo printed; afterwards the clone has a champion, version 1."""
    return checkout.check("nightowl", "demo", "--images", "48")
