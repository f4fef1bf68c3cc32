"""What nightowl relies on in the pinned ultralytics, so that an upgrade fails here, by name, and not in a night."""

import inspect
import io
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
import ultralytics
from ultralytics.cfg import get_cfg
from ultralytics.nn.tasks import DetectionModel
from ultralytics.utils import DEFAULT_CFG_DICT, SETTINGS, downloads
from ultralytics.utils.metrics import Metric
from ultralytics.utils.torch_utils import EarlyStopping

from nightowl.params import TrainParams
from nightowl.training import yolo
from nightowl.training.architecture import architecture
from nightowl.training.compute import Compute
from nightowl.training.plan import PLACES, arguments
from nightowl.training.progress import Figures, Progress

ROOT = Path(__file__).parents[2]


def given() -> dict[str, object]:
    return arguments(TrainParams(), 64, Compute(precision="fp32", memory_format="contiguous"))


def test_the_installed_version_is_the_pinned_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (pinned,) = [line for line in project["dependencies"] if line.startswith("ultralytics==")]
    assert f"ultralytics=={version('ultralytics')}" == pinned
    assert ultralytics.__version__ == version("ultralytics")


def test_every_argument_that_we_give_is_known_and_taken() -> None:
    assert set(given()) <= set(DEFAULT_CFG_DICT)
    assert set(DEFAULT_CFG_DICT) | {"save_dir"} >= PLACES
    assert get_cfg(overrides=given()).nbs == 16


def test_defaults_that_bear_on_training_are_those_we_know() -> None:
    """An argument that is neither given by us nor known here is a new one, which may change what is trained."""
    known = {
        *("bgr", "box", "cls", "cls_pw", "cls_remap", "copy_paste", "copy_paste_mode", "cos_lr", "cutmix"),
        *("dfl", "distill_model", "dis", "fraction", "iou", "max_det", "pretrained", "quantize"),
        *(
            "save",
            "save_period",
            "single_cls",
            "time",
            "val",
            "warmup_bias_lr",
            "warmup_momentum",
            "channels_last",
            "classes",
            "augment",
        ),
    }
    of_other_tasks = {
        *("angle", "auto_augment", "dgrad", "dlam", "dlog", "dropout", "erasing", "kobj", "mask_ratio", "overlap_mask"),
        *("pose", "rle"),
    }
    of_other_modes = {
        *("agnostic_nms", "cfg", "conf", "dnn", "dynamic", "embed", "exist_ok", "format", "line_width", "mode", "name"),
        *("opset", "optimize", "profile", "project", "resume", "retina_masks", "save_conf", "save_crop", "save_frames"),
        *("save_json", "save_txt", "show", "show_boxes", "show_conf", "show_labels", "simplify", "source", "split"),
        *("stream_buffer", "tracker", "vid_stride", "visualize", "workspace"),
    }
    assert set(DEFAULT_CFG_DICT) == set(given()) | known | (PLACES - {"save_dir"}) | of_other_tasks | of_other_modes


@pytest.mark.parametrize("key", ["hsv_h", "hsv_s", "hsv_v", "degrees", "translate", "scale", "shear", "perspective"])
def test_our_augmentation_defaults_are_upstreams(key: str) -> None:
    assert given()[key] == DEFAULT_CFG_DICT[key]


def test_no_integration_is_on() -> None:
    assert [name for name in yolo.INTEGRATIONS if SETTINGS[name]] == []
    assert SETTINGS["sync"] is False
    source = inspect.getsource(ultralytics.utils.callbacks.base.add_integration_callbacks)
    (listed,) = re.findall(r"for key in \(([^)]*)\)", source)
    assert tuple(re.findall(r'"(\w+)"', listed)) == yolo.INTEGRATIONS


def test_events_and_platform_are_off() -> None:
    code = (
        "import nightowl.training.yolo, sys; from ultralytics.utils.events import events;"
        "import ultralytics.utils as u;"
        "print(events.enabled, u.ONLINE, u.VERBOSE, u.AUTOINSTALL, u.SAFE_LOAD);"
        "print('nightowl-ultralytics' in str(u.USER_CONFIG_DIR))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "False", "False", "True", "True"]
    assert done.stderr == ""


def test_a_broken_image_is_pillows_own_error_again() -> None:
    assert PIL.Image.open.__module__ == "PIL.Image"
    with pytest.raises(PIL.UnidentifiedImageError):
        PIL.Image.open(io.BytesIO(b"not an image"))


@pytest.mark.parametrize("fitness", [[0.5, 0.4, 0.4], [0.0, 0.0, 0.1, 0.1, 0.1], [0.3, 0.4, 0.4, 0.5]])
def test_patience_ends_when_ultralytics_would(fitness: list[float]) -> None:
    stopper, progress = EarlyStopping(patience=2), Progress(micro_batch=1, val_batch=1)
    for epoch, value in enumerate(fitness, 1):
        figures = Figures(precision=None, recall=0, map50=value, map50_95=value)
        progress = progress.validated(figures, {}, num_epochs=100, patience=2)
        assert progress.finished == bool(stopper(epoch, value))


def test_the_best_epoch_is_chosen_by_ultralytics_fitness() -> None:
    metric = Metric()
    metric.all_ap = np.tile(np.linspace(0.9, 0.1, 10), (2, 1))
    figures = Figures(precision=None, recall=0, map50=float(metric.map50), map50_95=float(metric.map))
    assert figures.fitness == pytest.approx(metric.fitness())


@pytest.mark.parametrize(("name", "end2end"), [("yolo11n.yaml", False), ("yolo26n.yaml", True)])
def test_a_description_is_taken_as_a_model_and_tells_its_head(name: str, end2end: bool) -> None:
    model = DetectionModel(dict(architecture(name)), nc=2, verbose=False)
    assert model.yaml["yaml_file"] == name
    assert yolo._has_end2end(model.model[-1]) is end2end
    torch.testing.assert_close(model.stride, torch.tensor([8.0, 16.0, 32.0]))


def test_published_names_and_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: dict[str, object] = {}

    def safe_download(url: str, file: str, **options: object) -> None:
        asked.update(url=url, file=file)
        Path(file).write_bytes(b"weights")

    monkeypatch.setattr(downloads, "safe_download", safe_download)
    got = yolo.download_weights("yolo26n.pt", tmp_path / "weights")
    assert got == tmp_path / "weights" / "yolo26n.pt"
    assert got.read_bytes() == b"weights"
    assert [path.name for path in got.parent.iterdir()] == ["yolo26n.pt"]
    assert str(asked["url"]).endswith("/yolo26n.pt")
    assert {"yolo11n.pt", "yolo26n.pt"} <= set(yolo.GITHUB_ASSETS_NAMES)
