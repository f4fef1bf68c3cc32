"""An engine is held by the limits of its precision, on the test images where they are; on a stand-in for TensorRT."""

import sys
from pathlib import Path

import numpy as np
import pytest

from nightowl.cloud.bucket import FolderBucket
from nightowl.data.manifest import write_manifest
from nightowl.errors import StageFailed
from nightowl.evaluation.detections import write_detections
from nightowl.evaluation.truth import truth_of
from nightowl.evaluation.truth_table import write_truth
from nightowl.export.engine import TorchMemory
from nightowl.export.engine_build import build_engine
from nightowl.export.engine_on_test import MeasuredImages, measured_images
from nightowl.export.engine_record import EngineRecord, Fingerprint
from nightowl.export.engine_store import EngineStore
from nightowl.export.make import make
from nightowl.export.trained import Trained
from nightowl.export_params import ExportParams, Precision
from nightowl.files import write_record
from tests.export import fake_tensorrt
from tests.export.seeded import a_trained_model

HERE = Fingerprint(compute_capability="8.9", driver="580.65.06", tensorrt="11.4.0.106", platform="linux_x86_64")
NO_IMAGES = "no source here"


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", fake_tensorrt)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return a_trained_model(tmp_path_factory.mktemp("seeded"))


@pytest.fixture
def images(trained: Trained, tmp_path: Path) -> MeasuredImages:
    """What a bundle keeps of the test images, and the images in their source."""
    write_manifest(tmp_path / "inputs" / "manifest.jsonl", trained.dataset)
    write_detections(tmp_path / "detections.parquet", trained.detections)
    write_truth(tmp_path / "truth.parquet", truth_of(trained.dataset.classes, trained.dataset.of("test")))
    write_record(tmp_path / "metrics.json", trained.metrics)
    return measured_images(tmp_path, trained.folder)


def built(trained: Trained, precision: Precision, images: MeasuredImages | str, folder: Path) -> EngineRecord:
    params, store = ExportParams(precisions=(precision,)), EngineStore(FolderBucket(folder / "engines"))
    make(precision, trained, params, folder / "model.onnx")
    return build_engine(folder / "model.onnx", params, store, folder, images, (HERE, "a GPU"), TorchMemory("cpu"))


def engines_say(monkeypatch: pytest.MonkeyPatch, change: str, amount: float = 0.0) -> None:
    """Every engine adds `amount` to its output, or has its score planes in another order."""
    honest = fake_tensorrt._Context.execute_async_v3

    def wrong(self: fake_tensorrt._Context, stream: int) -> bool:
        done = honest(self, stream)
        (name,) = set(self._addresses) - {self._engine.plan["input"]}
        output = fake_tensorrt._at(self._addresses[name], self.get_tensor_shape(name))
        if change == "shifted":
            output += np.float32(amount)
        else:
            output[:, 4:] = output[:, [5, 6, 4]].copy()
        return done

    monkeypatch.setattr(fake_tensorrt._Context, "execute_async_v3", wrong)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_an_honest_engine_is_held_to_the_trained_model_on_the_test_images(
    precision: Precision, trained: Trained, images: MeasuredImages, tmp_path: Path
) -> None:
    record = built(trained, precision, images, tmp_path)
    assert (record.num_images, record.not_on_test) == (12, None)
    rules = " ".join(each.rule for each in record.checks)
    assert all(part in rules for part in ("on patches", "from file to box", "mAP50-95", "at the operating point"))
    assert all(each.passed for each in record.checks)


def test_the_limits_are_those_of_the_precision_that_the_onnx_is_in(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines_say(monkeypatch, "shifted", 0.01)
    with pytest.raises(StageFailed, match=r"score gap to the ONNX, on patches: 0\.01, at most 0\.001"):
        built(trained, "fp32", NO_IMAGES, tmp_path)
    record = built(trained, "fp16", NO_IMAGES, tmp_path)
    assert (record.checks[0].limit, record.not_on_test) == (0.05, NO_IMAGES)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_an_engine_that_finds_other_things_on_the_test_images_is_not_published(
    precision: Precision, trained: Trained, images: MeasuredImages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines_say(monkeypatch, "permuted")
    with pytest.raises(StageFailed, match=r"mAP50-95 gap on test: .*; it is not published"):
        built(trained, precision, images, tmp_path)
    assert not list((tmp_path / "engines").rglob("*.engine"))


def test_an_int8_engine_of_which_nothing_could_be_judged_is_not_published(trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(StageFailed, match="in int8 is judged on the test images, and there are none here: no source here"):
        built(trained, "int8", NO_IMAGES, tmp_path)


def test_images_that_changed_are_as_good_as_none_and_when_they_are_back_it_is_built_again(
    trained: Trained, images: MeasuredImages, tmp_path: Path
) -> None:
    path = trained.folder / images.detections.images[3]
    before = path.read_bytes()
    try:
        path.write_bytes(b"another image")
        record = built(trained, "fp32", images, tmp_path)
    finally:
        path.write_bytes(before)
    assert record.num_images == 0 and record.not_on_test is not None and path.name in record.not_on_test
    assert built(trained, "fp32", images, tmp_path).num_images == 12
    assert built(trained, "fp32", NO_IMAGES, tmp_path).num_images == 12, "what was held to them stays"
