import gc
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from nightowl.commands import cache
from nightowl.commands.data import app
from nightowl.settings import Settings
from nightowl.stages.cached import Use
from tests.data.cache.caches import a_source
from tests.data.cache.test_faults import flip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cache, "_home", lambda: (Settings(home=tmp_path), tmp_path / "prepared"))
    monkeypatch.setattr(cache, "_uses", dict)
    return tmp_path / "prepared"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["cache", *arguments], env={"COLUMNS": "200"})


def test_an_empty_home_has_nothing_and_is_left_alone(home: Path) -> None:
    assert "0.0 MB in 0 shards" in run("list").output
    assert run("verify").output == "0 prepared images in 0 shards; 0 shards with damage\n"
    assert run("prune").output == "removed 0 dataset versions and 0 shards, 0.0 MB\n"
    assert not home.exists()


def test_the_list_has_a_row_a_version_and_the_bytes_of_all(home: Path, tmp_path: Path) -> None:
    packed = a_source(tmp_path / "source", 20).build(home)
    output = run("list").output
    row = next(line for line in output.splitlines() if packed.index.stem[:12] in line)
    assert [cell.strip() for cell in row.split("│")[4:-1]] == ["raw", "20", "0.2 MB", "in use", "1"]


def test_the_list_says_whose_it_is_now(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stem = a_source(tmp_path / "source", 20).build(home).index.stem
    assert "│ -" in run("list").output, "nobody's"
    both = [Use(name, "train", "0123456789abcdef") for name in ("a", "b")]
    monkeypatch.setattr(cache, "_uses", lambda: {("raw", stem): both, ("jpeg", stem): [Use("c", "train", "99")]})
    row = next(line for line in run("list").output.splitlines() if stem[:12] in line)
    assert [cell.strip() for cell in row.split("│")[1:3]] == ["a train, b train", "0123456789ab"]


def test_damage_is_told_by_the_exit_code(home: Path, tmp_path: Path) -> None:
    a_source(tmp_path / "source", 5).build(home)
    assert run("verify").exit_code == 0
    flip(next(home.glob("*/shards/*/pixels.bin")), 0)
    result = run("verify")
    assert result.exit_code == 1
    assert "1 of 5 images damaged; made anew when they are needed" in result.output
    assert "5 prepared images in 1 shards; 1 shards with damage" in result.output


def test_pruning_by_hand_takes_its_limits_from_the_options(home: Path, tmp_path: Path) -> None:
    index = a_source(tmp_path / "source", 5).build(home).index
    gc.collect()
    moment = index.stat().st_mtime - 86_400 * 3
    os.utime(index, (moment, moment))
    assert "removed 0 dataset versions" in run("prune").output
    assert "removed 0 dataset versions" in run("prune", "--max-gb", "1").output
    assert "removed 1 dataset versions and 1 shards" in run("prune", "--max-age-days", "2").output
