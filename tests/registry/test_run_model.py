"""The bundle's run_model.py: with only numpy, onnxruntime and an image reader, the documented lines find our boxes."""

import json
import os
import re
import subprocess
import sys
from copy import deepcopy
from functools import reduce
from importlib.util import find_spec
from itertools import product
from operator import getitem
from pathlib import Path

import cv2
import numpy as np
import pytest

from nightowl.data.resize import letterbox_size
from nightowl.evaluation.card import ModelCard
from nightowl.evaluation.openvino import OpenVinoRunner
from nightowl.evaluation.postprocess import MAX_CANDIDATES
from nightowl.evaluation.predict import predict
from nightowl.evaluation.preprocess import PADDING_GREY, plan_letterbox
from nightowl.evaluation.runners import OnnxRunner
from nightowl.export.onnx import INPUT, OUTPUT, export_onnx
from nightowl.export.openvino import convert
from nightowl.params import TilingParams
from nightowl.registry import run_model
from tests.bundles import Made, bundle
from tests.tiny import CLASSES, tiny_card, tiny_module

ROOT = Path(__file__).resolve().parents[2]
ALONE = ("numpy", "numpy.libs", "onnxruntime", "flatbuffers", "google")  # onnxruntime asks for the last two
READER = ("PIL", "pillow.libs")
REFUSED = ("torch", "ultralytics", "cv2", "pydantic", "mlflow", "onnx", "nightowl")
TILED = TilingParams(size_px=96, overlap=0.25)


def documented() -> str:
    """The first Python of docs/deploy.md."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "deploy.md").read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def a_card(tiling: TilingParams | None) -> ModelCard:
    card = tiny_card()
    return card.model_copy(update={"model": card.model.model_copy(update={"tiling": tiling})})


def an_image(path: Path, width: int, height: int) -> Path:
    squares = np.random.default_rng(0).integers(0, 256, (6, 6, 3), np.uint8)
    cv2.imwrite(str(path), cv2.resize(squares, (width, height), interpolation=cv2.INTER_NEAREST))
    return path


def a_site(folder: Path, names: tuple[str, ...]) -> Path:
    """A folder with links to these packages, and nothing else."""
    folder.mkdir()
    origin = find_spec("numpy")
    assert origin is not None and origin.origin is not None
    packages = Path(origin.origin).parents[1]
    for name in names:
        if (packages / name).exists():
            (folder / name).symlink_to(packages / name)
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return a_site(tmp_path / "site", (*ALONE, *READER))


def run_there(code: str, folder: Path, site: Path) -> str:
    """What `code` prints in `folder`, on a Python that has only what is in `site`; it has imported nothing of ours."""
    prove = f"\nimport sys\nassert not set(sys.modules) & set({REFUSED!r}), sorted(sys.modules)\n"
    done = subprocess.run(
        [sys.executable, "-S", "-s", "-c", code + prove],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{site}:{folder}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("tiling", "width", "height"), [(None, 96, 70), (TILED, 150, 110)], ids=["whole", "tiled"])
def test_the_documented_lines_find_our_boxes_without_anything_of_ours(
    tiling: TilingParams | None, width: int, height: int, site: Path, tmp_path: Path
) -> None:
    export_onnx(tiny_module(), a_card(tiling), 17, tmp_path / "model.onnx")
    image = an_image(tmp_path / "image.png", width, height)  # not scaled: random weights turn one level into another box
    (tmp_path / "run_model.py").write_bytes(Path(run_model.__file__).read_bytes())
    (ours,) = predict(OnnxRunner(tmp_path / "model.onnx", threads=1), "m", [image]).images
    assert ours.detections
    lines = documented().splitlines()
    assert len(lines) <= 10
    rows = [line.split() for line in run_there(documented(), tmp_path, site).splitlines()]
    assert [row[0] for row in rows] == [found.class_name for found in ours.detections]
    theirs = np.array([row[1:] for row in rows], float)
    assert np.abs(theirs[:, 0] - [found.confidence for found in ours.detections]).max() < 1e-4
    assert np.abs(theirs[:, 1:] - [found.box_xyxy for found in ours.detections]).max() < 0.02


def test_a_whole_bundle_is_loaded_with_numpy_and_onnxruntime_alone(tmp_path: Path) -> None:
    export_onnx(tiny_module(), a_card(None), 17, tmp_path / "model.onnx")
    folder, record = bundle(tmp_path, Made(onnx=(tmp_path / "model.onnx").read_bytes()))
    pixels = cv2.imread(str(an_image(tmp_path / "image.png", 96, 96)))[..., ::-1]
    np.save(tmp_path / "image.npy", pixels)
    code = (
        "import hashlib, importlib.util, json, numpy; from run_model import Detector\n"
        "assert importlib.util.find_spec('PIL') is None\n"
        "digest = hashlib.sha256(open('model.onnx', 'rb').read()).hexdigest()\n"
        "assert digest == json.load(open('record.json'))['onnx_sha256']\n"
        f"print(json.dumps([name for name, *_ in Detector('model.onnx')(numpy.load({str(tmp_path / 'image.npy')!r}))]))"
    )
    (ours,) = predict(OnnxRunner(folder / "model.onnx", threads=1), "m", [tmp_path / "image.png"]).images
    assert ours.detections and record.onnx_sha256
    found = json.loads(run_there(code, folder, a_site(tmp_path / "bare", ALONE)))
    assert found == [each.class_name for each in ours.detections]


def test_openvinos_form_needs_numpy_and_openvino_alone(tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="the optional part `openvino` is not installed")
    export_onnx(tiny_module(), a_card(None), 17, tmp_path / "model.onnx")
    convert(tmp_path / "model.onnx", tmp_path / "model.xml")
    (tmp_path / "run_model.py").write_bytes(Path(run_model.__file__).read_bytes())
    image = an_image(tmp_path / "image.png", 96, 70)
    code = documented().replace("model.onnx", "model.xml")
    site = a_site(tmp_path / "openvino-site", ("numpy", "numpy.libs", "openvino", *READER))
    rows = [line.split() for line in run_there(code, tmp_path, site).splitlines()]
    (ours,) = predict(OpenVinoRunner(tmp_path / "model.xml", threads=1), "m", [image]).images
    assert ours.detections and [row[0] for row in rows] == [found.class_name for found in ours.detections]
    theirs = np.array([row[1:] for row in rows], float)
    assert np.abs(theirs[:, 0] - [found.confidence for found in ours.detections]).max() < 1e-4
    assert np.abs(theirs[:, 1:] - [found.box_xyxy for found in ours.detections]).max() < 0.02


def test_that_environment_has_nothing_else(site: Path) -> None:
    code = f"import importlib.util, json\nprint(json.dumps([n for n in {REFUSED!r} if importlib.util.find_spec(n)]))"
    done = subprocess.run(
        [sys.executable, "-S", "-s", "-c", code], env={"PYTHONPATH": str(site)}, cwd=site, capture_output=True, text=True
    )
    assert json.loads(done.stdout) == []


def test_it_scales_as_opencv_does_to_the_bit() -> None:
    draw = np.random.default_rng(1)
    sizes = [
        (37, 53, 96, 67),
        (37, 53, 20, 14),
        (37, 53, 53, 37),
        (37, 53, 1, 96),
        (1, 1, 5, 7),
        *draw.integers(1, 300, (200, 4)),
    ]
    for height, width, to_width, to_height in np.array(sizes).tolist():
        image = draw.integers(0, 256, (height, width, 3), np.uint8)
        theirs = cv2.resize(image, (to_width, to_height), interpolation=cv2.INTER_LINEAR)
        assert np.array_equal(run_model.resized(image, to_width, to_height), theirs), (height, width, to_width, to_height)


def test_called_with_images_it_says_what_it_finds_a_line_each(site: Path, tmp_path: Path) -> None:
    export_onnx(tiny_module(), a_card(None), 17, tmp_path / "model.onnx")
    (tmp_path / "run_model.py").write_bytes(Path(run_model.__file__).read_bytes())
    image = an_image(tmp_path / "image.png", 150, 110)
    (ours,) = predict(OnnxRunner(tmp_path / "model.onnx", threads=1), "m", [image]).images
    code = "import runpy, sys\nsys.argv = ['run_model.py', 'image.png']\nrunpy.run_path('run_model.py', run_name='__main__')"
    said = json.loads(run_there(code, tmp_path, site))
    assert said["image"] == "image.png" and ours.detections
    found = [(row["class"], pytest.approx(row["confidence"], abs=1e-4)) for row in said["detections"]]
    assert found == [(each.class_name, each.confidence) for each in ours.detections], "scaled, and the same all the same"


def test_an_image_that_cannot_be_read_is_told_and_the_others_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    export_onnx(tiny_module(), a_card(None), 17, tmp_path / "model.onnx")
    monkeypatch.setattr(run_model, "__file__", str(tmp_path / "run_model.py"))
    image = an_image(tmp_path / "image.png", 96, 70)
    grey = cv2.imread(str(image), cv2.IMREAD_GRAYSCALE)
    cv2.imwrite(str(tmp_path / "deep.png"), grey.astype(np.uint16) * 256 + 7)
    cv2.imwrite(str(tmp_path / "grey.png"), grey)
    with pytest.raises(SystemExit) as ended:
        run_model.main(["--confidence", "0.01", *(str(tmp_path / name) for name in ("gone.png", "deep.png", "grey.png"))])
    gone, deep, eight = map(json.loads, capsys.readouterr().out.splitlines())
    assert ended.value.code == 2 and "gone.png" in gone["error"]
    assert deep["detections"] == eight["detections"] != [], "of 16 bits a channel the upper 8"


def test_a_model_that_says_nan_is_broken_and_not_an_empty_image(tmp_path: Path) -> None:
    module = deepcopy(tiny_module())
    next(module.parameters()).data[:] = np.nan
    export_onnx(module, tiny_card(), 17, tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="NaN or infinity"):
        run_model.Detector(tmp_path / "model.onnx")(np.zeros((40, 60, 3), np.uint8))


def test_the_description_for_other_languages_has_our_numbers_and_names() -> None:
    text = (ROOT / "docs" / "deploy.md").read_text().partition("## In another language")[2]
    assert f"grey, {PADDING_GREY} in every channel" in text and f"{MAX_CANDIDATES:,} stay" in " ".join(text.split())
    assert f"one input, `{INPUT}`, and one output, `{OUTPUT}`" in text
    card = json.loads(a_card(TILED).model_dump_json())
    for path in (
        "model.tiling",
        "model.image_size",
        "model.head",
        "model.classes",
        "limits.confidence_floor",
        "limits.nms_iou",
    ):
        assert f"`{path}`" in text and reduce(getitem, path.split("."), card) is not None, path
    for path in ("model.tiling.merge_overlap", "limits.max_detections", "operating.classes", "operating.overall"):
        assert f"`{path}`" in text and reduce(getitem, path.split("."), card) is not None, path
    assert {"size_px", "overlap", "merge"} <= set(card["model"]["tiling"]) and "confidence" in card["operating"]["classes"][0]


def test_the_padding_is_split_as_the_description_says() -> None:
    for side, inner in product((64, 65, 640), range(1, 65)):
        plan, _ = plan_letterbox(inner, 1000, side)
        width = letterbox_size(inner, 1000, side).width
        assert (plan.pad_x, plan.pad_y) == ((side - width) // 2, 0)


def test_a_model_without_an_operating_point_asks_for_thresholds(tmp_path: Path) -> None:
    export_onnx(tiny_module(), tiny_card(overall=None), 17, tmp_path / "model.onnx")
    detector, image = run_model.Detector(tmp_path / "model.onnx"), np.zeros((40, 60, 3), np.uint8)
    with pytest.raises(ValueError, match="no operating point; give thresholds"):
        detector(image)
    assert isinstance(detector(image, [0.5] * len(CLASSES)), list)


def test_without_an_operating_point_its_command_asks_for_a_confidence_in_one_line(tmp_path: Path) -> None:
    export_onnx(tiny_module(), tiny_card(overall=None), 17, tmp_path / "model.onnx")
    (tmp_path / "run_model.py").write_bytes(Path(run_model.__file__).read_bytes())
    image = an_image(tmp_path / "image.png", 150, 110)

    def said(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, str(tmp_path / "run_model.py"), str(image), *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    refused, bad, found = said(), said("--confidence", "nan"), said("--confidence", "0")
    assert (refused.returncode, bad.returncode, found.returncode) == (2, 2, 0), found.stderr
    assert "say from where a detection counts: --confidence 0.25" in refused.stderr and "Traceback" not in refused.stderr
    assert "expected 0 to 1, got nan" in bad.stderr
    assert json.loads(found.stdout)["detections"]


def test_an_end_to_end_head_is_read_as_we_read_it(tmp_path: Path) -> None:
    export_onnx(tiny_module("end2end"), tiny_card("end2end"), 17, tmp_path / "model.onnx")
    image = an_image(tmp_path / "image.png", 96, 96)
    (ours,) = predict(OnnxRunner(tmp_path / "model.onnx", threads=1), "m", [image]).images
    found = run_model.Detector(tmp_path / "model.onnx")(cv2.imread(str(image))[..., ::-1])
    assert ours.detections is not None
    assert [name for name, _, _ in found] == [each.class_name for each in ours.detections]
