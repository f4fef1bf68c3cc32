from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.end_to_end.checkouts import Checkout, clone
from tests.end_to_end.servers import prefect_server


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


@pytest.fixture(scope="session")
def api(prefect_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prefect server on loopback; nights that use it need not start one of their own."""
    with prefect_server(prefect_home, tmp_path_factory.mktemp("server") / "server.log") as address:
        yield address


@pytest.fixture(scope="session")
def after_first(checkout: Checkout, first_night: str, api: str) -> Checkout:
    """The clone after its first night, with a server for the nights to come."""
    return replace(checkout, api=api)
