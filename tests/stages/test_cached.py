from pathlib import Path

import pytest

from nightowl.data.cache.opening import open_cache
from nightowl.data.manifest import write_manifest
from nightowl.data.pin import build_manifest
from nightowl.data.tiling import in_views
from nightowl.params import DataParams, PrepareParams
from nightowl.settings import Settings
from nightowl.stages.cached import Use, uses_of
from nightowl.stages.workspace import Workspace
from tests.datasets import a_dataset, write_yolo_dataset

TILES = {"size_px": 32, "overlap": 0.5}


@pytest.mark.parametrize("params", [{"cache": "raw"}, {"cache": "jpeg"}, {"tiling": TILES}])
def test_it_names_the_indexes_that_a_training_opens(tmp_path: Path, params: dict[str, object]) -> None:
    source = write_yolo_dataset(tmp_path / "source", a_dataset(6, 4, 2))
    manifest = build_manifest(source, DataParams(), tmp_path / "stat.json")[0]
    workspace, prepare = (
        Workspace(tmp_path, "line-3", Settings(home=tmp_path / "home")),
        PrepareParams.model_validate({"image_size": 96, **params}),
    )
    assert uses_of(workspace, prepare) == {}, "nothing is prepared yet"
    for path in (workspace.manifest, workspace.dataset):
        path.parent.mkdir(parents=True)
        write_manifest(path, manifest)
    uses, views = uses_of(workspace, prepare), in_views(manifest, prepare.tiling)
    assert {use.split: use for use in uses.values()} == {
        "train": Use("line-3", "train", manifest.version()),
        "val": Use("line-3", "val", manifest.version()),
    }
    for (form, stem), use in uses.items():
        index = open_cache(views, use.split, source, prepare, workspace.settings).index
        assert (index.parents[1].name.partition("-")[0], index.stem) == (form, stem)
