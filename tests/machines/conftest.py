import os

import pytest

from tests.cloud.conftest import aws, moto_endpoint  # noqa: F401  fixtures


@pytest.fixture(autouse=True)
def unflushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test cuts the power, and boards that are folders flush whatever is put."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
