from pathlib import Path

import pytest

from nightowl.errors import SettingsError
from nightowl.settings import home_of, load_settings


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTOWL_HOME", raising=False)


def test_the_home_lies_in_the_checkout_unless_said_otherwise(tmp_path: Path) -> None:
    assert home_of(load_settings(tmp_path)) == tmp_path / ".nightowl"


def test_a_variable_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings.toml").write_text('device = "cpu"\nnum_workers = 4\n[sources]\nline = "/data/line"\n')
    monkeypatch.setenv("NIGHTOWL_NUM_WORKERS", "8")
    monkeypatch.setenv("NIGHTOWL_SOURCES__OTHER", "/data/other")
    settings = load_settings(tmp_path)
    assert (settings.device, settings.num_workers) == ("cpu", 8)
    assert settings.sources == {"line": "/data/line", "other": "/data/other"}


@pytest.mark.parametrize(
    ("content", "expected", "reason"),
    [
        ("num_workers = -1\n", "num_workers", "out of range"),
        ("colour = 1\n", "colour: no such setting; known here: home, ", "an unknown key"),
        ("num_worker = 1\n", r"num_worker: no such setting \(did you mean num_workers\?\)", "a typo"),
        ('[machines]\nregions = "x"\n', r"machines.regions: no such setting \(did you mean region\?\)", "a typo in a table"),
        ("[detached]\nmax_hour = 1\n", r"detached.max_hour: no such setting \(did you mean max_hours\?\)", "in another table"),
        ('engine = "nodes"\n', "engine: Input should be 'local', 'detached' or 'ec2'", "no such engine"),
        ("device = \n", "settings.toml", "broken TOML"),
    ],
)
def test_a_fault_in_the_file_is_told(tmp_path: Path, content: str, expected: str, reason: str) -> None:
    (tmp_path / "settings.toml").write_text(content)
    with pytest.raises(SettingsError, match=expected):
        load_settings(tmp_path)


def test_a_misspelt_variable_is_refused_with_the_known_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTOWL_HOMME", "/x")
    with pytest.raises(
        SettingsError, match=r"NIGHTOWL_HOMME: no such setting \(did you mean NIGHTOWL_HOME\?\); known: NIGHTOWL_HOME, "
    ):
        load_settings(tmp_path)


def test_a_variable_that_is_set_to_nothing_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTOWL_HOME", "")
    assert home_of(load_settings(tmp_path)) == tmp_path / ".nightowl"


def test_a_relative_home_is_the_same_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTOWL_HOME", "state")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    settings = load_settings(tmp_path)
    assert (home_of(settings), settings.weights) == (tmp_path / "state", tmp_path / "state" / "weights")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("NIGHTOWL_SOURCES", "/data", r"NIGHTOWL_SOURCES: expected JSON such as .* got \'/data\'"),
        ("NIGHTOWL_DEVICE", "tpu", "device: String should match pattern .* got 'tpu'"),
    ],
)
def test_a_variable_of_a_wrong_kind_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=expected):
        load_settings(tmp_path)
