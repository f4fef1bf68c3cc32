from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from tests.machines.spot.account import Account, renting


@pytest.fixture(scope="module")
def a_module_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with pytest.MonkeyPatch.context() as monkeypatch, renting(tmp_path_factory.mktemp("account"), monkeypatch) as made:
        yield made


@pytest.fixture
def account(a_module_account: Account, tmp_path: Path) -> Iterator[Account]:
    """An account with nothing rented, and no board; to furnish one takes a second, so that a file's tests share theirs."""
    account = Account(a_module_account.settings, tmp_path / "boards")
    yield account
    account.wipe()


@pytest.fixture
def served(account: Account) -> Iterator[str]:
    """Where another process finds the same account."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()
