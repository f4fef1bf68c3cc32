"""The figures of the champion's data: from this machine, or from the champion's bundle."""

from pathlib import Path

import pytest

from nightowl.data.figures import figures_of
from nightowl.data.manifest import Box, Image, Manifest
from nightowl.evaluation.champion import ChampionRecord
from nightowl.night.figures import champion_figures, keep_figures
from nightowl.registry.bundle import write_bundle
from nightowl.registry.restore import champion_record
from nightowl.registry.store import Registry
from tests.bundles import Made, facts, new_registry, registered, stage_files

DATA = Manifest(("open",), (Image("a.png", "a" * 64, 1, 9, 9, "train", (Box(0, 1, 1, 5, 5),)),), "as given")


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """A champion whose bundle has the manifest of DATA."""
    made = new_registry(tmp_path / "home")
    files = stage_files(tmp_path / "night", Made())
    (files.inputs / "manifest.jsonl").write_bytes(DATA.to_bytes())
    record = write_bundle(files, facts(Made()), Made().params, tmp_path / "bundle")
    made.register("demo", tmp_path / "bundle", record)
    made.promote("demo", "1", "first", by="tester")
    return made


def champion(registry: Registry) -> ChampionRecord:
    found = champion_record(registry, "demo")
    assert found is not None
    return found


def test_what_was_pinned_elsewhere_comes_from_the_bundle_and_is_then_kept(registry: Registry, tmp_path: Path) -> None:
    home = tmp_path / "another"
    assert champion_figures(registry, champion(registry), home) == figures_of(DATA)
    assert [path.stem for path in (home / "figures").iterdir()] == [DATA.version()]


def test_what_was_pinned_here_needs_no_bundle(registry: Registry, tmp_path: Path) -> None:
    keep_figures(tmp_path, figures_of(DATA))
    gone = champion(registry).model_copy(update={"version": "99"})
    assert champion_figures(registry, gone, tmp_path) == figures_of(DATA)


def test_a_manifest_of_another_format_gives_nothing_to_compare_with(tmp_path: Path) -> None:
    made = new_registry(tmp_path / "home")
    registered(made, tmp_path, Made())
    made.promote("demo", "1", "first", by="tester")
    assert champion_figures(made, champion(made), tmp_path / "another") is None
