import json
from pathlib import Path

import pytest

from nightowl.data.findings import read_findings, write_findings
from nightowl.data.manifest import read_manifest, write_manifest
from nightowl.data.pin import build_manifest
from nightowl.data.prepared import PrepareSummary
from nightowl.errors import DataError
from nightowl.params import DataParams, Params, PrepareParams, load_params
from nightowl.progress import untracked
from nightowl.settings import Settings
from nightowl.stages.prepare import run
from nightowl.stages.workspace import Workspace
from tests.datasets import a_dataset, write_image, write_text, write_yolo_dataset

ROOT = Path(__file__).parents[2]
PARAMS = Params(prepare=PrepareParams(max_quarantined_fraction=0.3))


def pinned(root: Path, source: Path, params: Params = PARAMS) -> Workspace:
    workspace = Workspace(root / "checkout", "demo", Settings(home=root / "home", sources={"demo": str(source)}))
    manifest, findings = build_manifest(source, params.data, root / "cache.json", untracked)
    write_manifest(workspace.manifest, manifest)
    write_findings(workspace.findings, findings)
    return workspace


def prepare(workspace: Workspace, params: Params = PARAMS) -> Path:
    out = workspace.root / "out"
    out.mkdir(exist_ok=True)
    run(params, workspace, out)
    return out


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_yolo_dataset(tmp_path / "data", a_dataset(6, 3, 3))


def test_sound_data_is_written_as_it_was_pinned(tmp_path: Path, source: Path) -> None:
    workspace = pinned(tmp_path, source)
    out = prepare(workspace)
    assert read_manifest(out / "dataset.jsonl") == read_manifest(workspace.manifest)
    assert read_findings(out / "quarantine.json") == []
    summary = PrepareSummary.model_validate_json((out / "prepare.json").read_text())
    assert summary.images == {"train": 6, "val": 3, "test": 3}
    assert summary.dataset_version == read_manifest(workspace.manifest).version()


def test_a_truncated_image_is_quarantined_beside_what_pinning_found(tmp_path: Path, source: Path) -> None:
    cut = write_image(source / "images" / "train" / "train000.png")
    cut.write_bytes(cut.read_bytes()[:2000])
    write_text(source / "images" / "train" / "train001.png", "no image")
    out = prepare(pinned(tmp_path, source))
    assert [(f.kind, f.path, f.action) for f in read_findings(out / "quarantine.json")] == [
        ("unreadable_image", "images/train/train001.png", "image quarantined"),
        ("unreadable_image", "images/train/train000.png", "image quarantined"),
    ]
    assert len(read_manifest(out / "dataset.jsonl").of("train")) == 4
    assert json.loads((out / "prepare.json").read_text())["quarantined_images"] == 2


def test_too_much_that_is_broken_stops_it_and_writes_nothing(tmp_path: Path, source: Path) -> None:
    for number in range(4):
        write_text(source / "images" / "train" / f"train00{number}.png", "no image")
    workspace = pinned(tmp_path, source)
    with pytest.raises(DataError, match=r"33.3% of the images are broken, at most 30.0% are allowed"):
        prepare(workspace)
    assert list((workspace.root / "out").iterdir()) == []


def test_an_image_that_changed_since_it_was_pinned_stops_it(tmp_path: Path, source: Path) -> None:
    workspace = pinned(tmp_path, source)
    write_image(source / "images" / "val" / "val000.png", seed=77)
    with pytest.raises(DataError, match=r"val000\.png: image changed since it was pinned"):
        prepare(workspace)


def test_an_image_that_is_gone_stops_it(tmp_path: Path, source: Path) -> None:
    workspace = pinned(tmp_path, source)
    (source / "images" / "val" / "val000.png").unlink()
    with pytest.raises(DataError, match=r"val000\.png: pinned in the manifest, but cannot be read"):
        prepare(workspace)


def test_a_manifest_pinned_under_other_params_is_refused(tmp_path: Path, source: Path) -> None:
    workspace = pinned(tmp_path, source)
    with pytest.raises(DataError, match=r"pinned under other `data` params than those of detectors/demo/params\.yaml now; pin"):
        prepare(workspace, Params(data=DataParams(layout="yolo")))


def test_bccd_keeps_everything_but_two_boxes_without_area(tmp_path: Path) -> None:
    bccd = ROOT.parent / "shared" / "data" / "bccd"
    if not bccd.is_dir():
        pytest.skip(f"the BCCD data set is not at {bccd}: nothing was tested on real data")
    params = load_params(ROOT, "bccd")
    out = prepare(pinned(tmp_path, bccd, params), params)
    summary = PrepareSummary.model_validate_json((out / "prepare.json").read_text())
    assert summary.images == {"train": 205, "val": 87, "test": 72}
    assert summary.boxes == {"RBC": 4153, "WBC": 372, "Platelets": 361}
    assert [(f.kind, f.path) for f in read_findings(out / "quarantine.json")] == [
        ("zero_area_box", "images/BloodImage_00338.jpg"),
        ("zero_area_box", "images/BloodImage_00343.jpg"),
    ]
    assert summary.broken_fraction == 2 / 364
