import importlib.metadata
import os

import pytest

from flows import __main__ as start
from nightowl.errors import StageFailed


def prefect_source() -> str:
    return importlib.metadata.distribution("prefect").locate_file("prefect/server/api/server.py").read_text()


def test_a_server_that_starts_too_late_is_one_line_and_another_error_is_not() -> None:
    late = start.explain_late_server(RuntimeError(f"{start.SERVER_LATE}. Ephemeral server process exited with code 1."))
    assert isinstance(late, StageFailed) and late.exit_code == 1
    assert "\n" not in str(late) and start.PATIENCE in str(late)
    assert start.explain_late_server(RuntimeError("something else")) is None


def test_the_prefect_that_is_installed_words_it_so() -> None:
    assert start.SERVER_LATE in prefect_source() and start.PATIENCE in prefect_source()


@pytest.mark.parametrize(("given", "expected"), [(None, "180"), ("7", "7")])
def test_prefects_server_is_given_time_unless_the_user_says_how_much(
    given: str | None, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "environ", {start.PATIENCE: given} if given else {})

    def too_late(options: object) -> None:
        raise RuntimeError(f"{start.SERVER_LATE}.")

    monkeypatch.setattr(start, "_run", too_late)
    with pytest.raises(StageFailed, match=f"within {expected} s"):
        start.main(["nightly", "demo"])
    assert capsys.readouterr().out.startswith("starting Prefect"), "said before the wait"
