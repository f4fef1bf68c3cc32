"""Stage evaluate: the candidate and the champion, measured tonight on the same images."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from nightowl.data.manifest import read_manifest, write_manifest
from nightowl.errors import DataError, WeightsError
from nightowl.evaluation.detections import read_detections
from nightowl.evaluation.metrics import Curves, Metrics
from nightowl.evaluation.operating import OperatingPoint
from nightowl.export.onnx import export_onnx
from nightowl.files import write_atomic
from nightowl.stages import evaluate
from nightowl.stages.workspace import Workspace
from tests.stages.night import PARAMS, a_night, crown, load_tiny
from tests.tiny import CLASSES, tiny_card, tiny_module


@pytest.fixture(autouse=True)
def _tiny_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "load_torch_model", load_tiny)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("champion") / "model.onnx"
    export_onnx(tiny_module(), tiny_card(), 17, path)
    return path


def run(workspace: Workspace) -> Path:
    out = workspace.out("evaluate")
    out.mkdir(parents=True)
    evaluate.run(PARAMS, workspace, out)
    return out


def metrics(workspace: Workspace, whose: str) -> Metrics:
    return Metrics.model_validate_json(workspace.metrics(whose).read_bytes())


def test_the_candidate_is_measured_on_test_and_its_threshold_chosen_on_val(tmp_path: Path) -> None:
    workspace = a_night(tmp_path)
    out = run(workspace)
    figures = metrics(workspace, "candidate")
    version = read_manifest(workspace.dataset).version()
    assert (figures.model, figures.split, figures.num_images, figures.num_truth) == ("candidate", "test", 6, 24)
    assert figures.dataset_version == version
    operating = OperatingPoint.model_validate_json(workspace.operating.read_bytes())
    assert (operating.split, operating.dataset_version) == ("val", version)
    assert {path.split("-")[0] for path in read_detections(workspace.detections("candidate")).images} == {"test"}
    assert {path.split("-")[0] for path in read_detections(out / "candidate_val.parquet").images} == {"val"}
    assert not workspace.metrics("champion").exists()


def test_the_same_model_as_champion_measures_the_same(tmp_path: Path, exported: Path) -> None:
    workspace = a_night(tmp_path)
    champion = crown(workspace, exported)
    run(workspace)
    ours, theirs = metrics(workspace, "candidate"), metrics(workspace, "champion")
    assert (theirs.model, theirs.weights_sha256) == ("demo v3", champion.weights_sha256)
    assert theirs.map50_95 == pytest.approx(ours.map50_95, abs=1e-3)
    assert theirs.num_truth == ours.num_truth


def test_a_champion_is_measured_on_the_classes_in_common_alone(tmp_path: Path, exported: Path) -> None:
    workspace = a_night(tmp_path, classes=("spur", "new", "open"))
    crown(workspace, exported)
    run(workspace)
    theirs = metrics(workspace, "champion")
    assert [c.name for c in theirs.classes] == ["spur", "open"]
    ours = {c.name: c.num_truth for c in metrics(workspace, "candidate").classes}
    assert {c.name: c.num_truth for c in theirs.classes} == {name: ours[name] for name in ("spur", "open")}
    curves = Curves.model_validate_json(workspace.curves("champion").read_bytes())
    assert (len(curves.confusion), curves.confusion_confidence) == (3, 0.3)
    shipped = OperatingPoint.model_validate_json(workspace.champion_operating.read_bytes())
    assert ([each.name for each in shipped.classes], shipped.overall) == (["spur", "open"], 0.3)


def test_common_classes_that_do_not_occur_have_no_figures(tmp_path: Path, exported: Path) -> None:
    workspace = a_night(tmp_path, classes=("new", "newer", "open"))
    dataset = read_manifest(workspace.dataset)
    images = tuple(replace(i, boxes=tuple(b for b in i.boxes if b.class_id < 2)) for i in dataset.images)
    write_manifest(workspace.dataset, replace(dataset, images=images))
    crown(workspace, exported)
    run(workspace)
    theirs = metrics(workspace, "champion")
    assert (theirs.num_truth, theirs.map50_95, theirs.classes[0].ap50) == (0, None, None)


def test_a_champion_without_a_common_class_is_not_measured(
    tmp_path: Path, exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = a_night(tmp_path, classes=("x", "y", "z"))
    crown(workspace, exported)
    run(workspace)
    assert not workspace.metrics("champion").exists()
    assert "champion v3 knows none of tonight's classes" in capsys.readouterr().err


def test_a_reference_other_than_the_champion_is_measured_beside_it(tmp_path: Path, exported: Path) -> None:
    workspace = a_night(tmp_path)
    champion = crown(workspace, exported)
    run(workspace)
    assert not workspace.metrics("reference").exists(), "the champion is the reference: measured once"
    shutil.rmtree(workspace.out("evaluate"))
    crown(workspace, exported, reference=champion.model_copy(update={"version": "1", "weights_sha256": "8" * 64}))
    run(workspace)
    theirs = metrics(workspace, "reference")
    assert (theirs.model, theirs.weights_sha256) == ("demo v1", "8" * 64)
    assert theirs.map50_95 == metrics(workspace, "champion").map50_95
    assert read_detections(workspace.detections("reference")).images == read_detections(workspace.detections("champion")).images


def test_an_altered_champion_is_refused(tmp_path: Path, exported: Path) -> None:
    workspace = a_night(tmp_path)
    champion = crown(workspace, exported)
    write_atomic(tmp_path / "home" / "blobs" / champion.onnx_sha256, b"altered")
    with pytest.raises(WeightsError, match="the ONNX of champion v3"):
        run(workspace)


def test_an_image_that_changed_since_it_was_pinned_ends_it(tmp_path: Path) -> None:
    workspace = a_night(tmp_path)
    (tmp_path / "source" / "test-3.png").write_bytes(b"other")
    with pytest.raises(DataError, match=r"test-3\.png"):
        run(workspace)


@pytest.mark.parametrize("split", ["val", "test"])
def test_a_split_without_images_is_refused_by_name(tmp_path: Path, split: str) -> None:
    workspace = a_night(tmp_path)
    dataset = read_manifest(workspace.dataset)
    write_manifest(workspace.dataset, replace(dataset, images=tuple(i for i in dataset.images if i.split != split)))
    with pytest.raises(DataError, match=f"^{split}: no images"):
        run(workspace)


def test_the_tiny_model_finds_all_its_classes(tmp_path: Path) -> None:
    workspace = a_night(tmp_path)
    run(workspace)
    found = read_detections(workspace.detections("candidate"))
    assert {found.classes[i] for i in found.class_id.tolist()} == set(CLASSES)
