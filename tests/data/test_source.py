import json
import multiprocessing
from pathlib import Path

import pytest

from nightowl.data.source import record_source, source_folder
from nightowl.errors import DataError
from nightowl.settings import Settings


def settings(home: Path, **sources: str) -> Settings:
    return Settings(home=home, sources=sources)


def test_what_was_pinned_last_is_found_again(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        record_source(settings(tmp_path), "demo", tmp_path / name)
    record_source(settings(tmp_path), "bccd", tmp_path / "one")
    assert source_folder(settings(tmp_path), "demo") == tmp_path / "two"
    assert source_folder(settings(tmp_path), "bccd") == tmp_path / "one"


def test_a_setting_wins_over_what_was_pinned(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    record_source(settings(tmp_path), "demo", tmp_path)
    assert source_folder(settings(tmp_path, demo=str(tmp_path / "set")), "demo") == tmp_path / "set"


def test_a_relative_folder_is_recorded_as_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    record_source(settings(tmp_path), "demo", Path("."))
    assert source_folder(settings(tmp_path), "demo") == tmp_path


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (
            {},
            r"demo: nobody has said where its data lies; name it in settings.toml under \[sources\], or in NIGHTOWL_S",
        ),
        ({"demo": "data/demo"}, "setting sources.demo: expected an absolute path"),
        ({"demo": "/nowhere/demo"}, "setting sources.demo: /nowhere/demo: no such folder; correct it, or pin the inputs again"),
    ],
)
def test_an_unknown_source_is_an_error_that_says_what_to_do(tmp_path: Path, sources: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        source_folder(settings(tmp_path, **sources), "demo")


@pytest.mark.parametrize("content", ["{", "[]", '{"demo": 3}'])
def test_a_broken_record_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "sources.json").write_text(content)
    with pytest.raises(DataError, match=r"sources\.json: .*remove it and pin the inputs again"):
        source_folder(settings(tmp_path), "demo")


def _record_many(home: Path, detector: str) -> None:
    for _ in range(20):
        record_source(settings(home), detector, home)


def test_two_nights_that_record_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_record_many, args=(tmp_path, name)) for name in ("one", "two")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert set(json.loads((tmp_path / "sources.json").read_text())) == {"one", "two"}
