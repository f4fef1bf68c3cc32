import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import PIL.Image
import pytest

from nightowl.audit_params import AuditParams
from nightowl.data import looks
from nightowl.data.audit import Audit
from nightowl.data.figures import DatasetFigures, figures_of
from nightowl.data.findings import WHOLE, read_findings, write_findings
from nightowl.data.golden import GoldenImage, golden_text, read_golden
from nightowl.data.manifest import read_manifest, write_manifest
from nightowl.data.pin import build_manifest
from nightowl.data.prepared import PrepareSummary
from nightowl.errors import DataError
from nightowl.files import sha256_file
from nightowl.params import DataParams, Params, PrepareParams, load_params
from nightowl.progress import untracked
from nightowl.settings import Settings
from nightowl.stages.prepare import run
from nightowl.stages.workspace import Workspace
from tests.datasets import a_dataset, write_image, write_text, write_yolo_dataset

ROOT = Path(__file__).parents[2]
PARAMS = Params(prepare=PrepareParams(max_quarantined_fraction=0.3))


def pinned(
    root: Path,
    source: Path,
    params: Params = PARAMS,
    golden: Sequence[GoldenImage] = (),
    previous: DatasetFigures | None = None,
) -> Workspace:
    workspace = Workspace(root / "checkout", "demo", Settings(home=root / "home", sources={"demo": str(source)}))
    manifest, findings = build_manifest(source, params.data, root / "cache.json", untracked, golden)
    write_manifest(workspace.manifest, manifest)
    write_findings(workspace.findings, findings)
    write_text(workspace.golden, golden_text(golden))
    write_text(workspace.previous, previous.model_dump_json() if previous else "null")
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
    assert [f.kind for f in read_findings(out / "quarantine.json")] == ["no_background_images"]
    summary = PrepareSummary.model_validate_json((out / "prepare.json").read_text())
    assert summary.images == {"train": 6, "val": 3, "test": 3}
    assert summary.dataset_version == read_manifest(workspace.manifest).version()


def test_a_truncated_image_is_quarantined_beside_what_pinning_found(tmp_path: Path, source: Path) -> None:
    cut = write_image(source / "images" / "train" / "train000.png")
    cut.write_bytes(cut.read_bytes()[:2000])
    write_text(source / "images" / "train" / "train001.png", "no image")
    out = prepare(pinned(tmp_path, source))
    assert [(f.kind, f.path, f.action) for f in read_findings(out / "quarantine.json")][:2] == [
        ("unreadable_image", "images/train/train001.png", "image quarantined"),
        ("unreadable_image", "images/train/train000.png", "image quarantined"),
    ]
    assert len(read_manifest(out / "dataset.jsonl").of("train")) == 4
    assert json.loads((out / "prepare.json").read_text())["quarantined_images"] == 2


@pytest.mark.parametrize(
    ("broken", "said"), [(0, ""), (1, "quarantined: 1 image and 0 boxes; clipped: 0 boxes"), (2, "quarantined: 2 images and")]
)
def test_what_is_left_out_is_said_in_one_line(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str], broken: int, said: str
) -> None:
    for number in range(broken):
        write_text(source / "images" / "train" / f"train00{number}.png", "no image")
    prepare(pinned(tmp_path, source))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("quarantined")]
    assert len(lines) == (1 if broken else 0)
    assert all(line.startswith(said) for line in lines)


def test_too_much_that_is_broken_stops_it_and_writes_nothing(tmp_path: Path, source: Path) -> None:
    for number in range(4):
        write_text(source / "images" / "train" / f"train00{number}.png", "no image")
    workspace = pinned(tmp_path, source)
    with pytest.raises(DataError, match=r"33.3% of the images .* at most 30.0% are allowed"):
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


def test_a_copy_of_a_test_image_leaves_train_and_is_in_the_audit(tmp_path: Path, source: Path) -> None:
    copied = PIL.Image.open(source / "images" / "test" / "test000.png")
    copied.save(source / "images" / "train" / "copy.jpg", quality=95)
    write_text(source / "labels" / "train" / "copy.txt", "")
    out = prepare(pinned(tmp_path, source))
    audit = Audit.model_validate_json((out / "audit.json").read_text())
    assert [(row.kind, row.policy, row.num_findings, row.fails) for row in audit.rows] == [
        ("near_duplicate_across_splits", "quarantine", 1, None),
        ("no_background_images", "allow", 1, None),
    ]
    assert "images/train/copy.jpg" not in [image.path for image in read_manifest(out / "dataset.jsonl").images]
    assert len(read_manifest(out / "dataset.jsonl").of("test")) == 3


def test_a_policy_of_fail_stops_it_with_the_first_finding(tmp_path: Path, source: Path) -> None:
    write_text(source / "labels" / "train" / "train000.txt", "7 0.5 0.5 0.2 0.2\n")
    with pytest.raises(DataError) as raised:
        prepare(pinned(tmp_path, source))
    assert str(raised.value) == (
        "the audit stops here: 1 unknown_class: params prepare.audit.policies.unknown_class is fail; first: "
        "images/train/train000.png: labels/train/train000.txt line 1: class id 7, but data.yaml has 2 names (ids 0 to 1); "
        "add the name or correct the label; `nightowl data audit` shows all of them"
    )


def test_golden_images_test_and_their_copies_are_barred_from_training(tmp_path: Path, source: Path) -> None:
    taken = source / "images" / "train" / "train000.png"
    golden = GoldenImage(sha256_file(taken), "images/train/train000.png")
    shutil.copy(taken, taken.with_name("copy.png"))
    write_text(source / "labels" / "train" / "copy.txt", "")
    out = prepare(pinned(tmp_path, source, golden=[golden]))
    dataset = read_manifest(out / "dataset.jsonl")
    assert {image.path: image.split for image in dataset.images}["images/train/train000.png"] == "test"
    assert "images/train/copy.png" not in {image.path for image in dataset.images}
    assert read_golden(out / "barred.txt") == (golden,)


def test_a_golden_image_that_is_gone_stops_it(tmp_path: Path, source: Path) -> None:
    workspace = pinned(tmp_path, source, golden=[GoldenImage("a" * 64, "images/test/gone.png")])
    with pytest.raises(
        DataError, match=r"1 golden_missing: .* first: images/test/gone\.png: golden, but no image of the data has"
    ):
        prepare(workspace)


def test_data_is_compared_with_the_champions(tmp_path: Path, source: Path) -> None:
    before = figures_of(read_manifest(pinned(tmp_path / "before", source).manifest))
    other = before.model_copy(update={"dataset_version": "f" * 64, "class_boxes": (6, 0)})
    few = PARAMS.model_copy(update={"prepare": PARAMS.prepare.model_copy(update={"audit": AuditParams(min_drift_boxes=1)})})
    out = prepare(pinned(tmp_path, source, few, previous=other), few)
    audit = Audit.model_validate_json((out / "audit.json").read_text())
    assert audit.compared_with == "f" * 64
    assert audit.drift[0].psi is not None and audit.drift[0].psi > 0


def test_an_image_is_decoded_once_in_its_life(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = pinned(tmp_path, source)
    first = read_manifest(prepare(workspace) / "dataset.jsonl")
    decoded: list[str] = []
    real = looks.look_at
    monkeypatch.setattr(looks, "look_at", lambda content, name: decoded.append(name) or real(content, name))
    write_image(source / "images" / "train" / "new.png", seed=50)
    workspace = pinned(tmp_path, source)
    assert len(read_manifest(prepare(workspace) / "dataset.jsonl").images) == len(first.images) + 1
    assert decoded == ["images/train/new.png"]


def test_bccd_loses_two_boxes_without_area_and_a_train_image_that_val_has_too(tmp_path: Path) -> None:
    bccd = ROOT.parent / "shared" / "data" / "bccd"
    if not bccd.is_dir():
        pytest.skip(f"the BCCD data set is not at {bccd}: nothing was tested on real data")
    params = load_params(ROOT, "bccd")
    out = prepare(pinned(tmp_path, bccd, params), params)
    summary = PrepareSummary.model_validate_json((out / "prepare.json").read_text())
    assert summary.images == {"train": 204, "val": 87, "test": 72}
    assert [(f.kind, f.path) for f in read_findings(out / "quarantine.json")] == [
        ("zero_area_box", "images/BloodImage_00338.jpg"),
        ("zero_area_box", "images/BloodImage_00343.jpg"),
        ("near_duplicate_across_splits", "images/BloodImage_00038.jpg"),
        ("no_background_images", WHOLE),
    ]
    assert summary.broken_fraction == 2 / 364
