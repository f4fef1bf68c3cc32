from collections.abc import Callable
from pathlib import Path

import pytest

from nightowl.data.formats.detect import detect, folder_of, list_source
from nightowl.data.manifest import Box
from nightowl.errors import DataError
from nightowl.params import DataParams
from tests.datasets import (
    Sample,
    a_dataset,
    write_coco_dataset,
    write_image,
    write_text,
    write_voc_dataset,
    write_yolo_dataset,
)

AUTO = DataParams()


@pytest.mark.parametrize(
    ("write", "layout"), [(write_yolo_dataset, "yolo"), (write_coco_dataset, "coco"), (write_voc_dataset, "voc")]
)
def test_each_layout_is_detected(tmp_path: Path, write: Callable[[Path, list[Sample]], Path], layout: str) -> None:
    assert detect(write(tmp_path, a_dataset()), AUTO) == layout


def test_two_layouts_at_once_are_an_error_that_lists_both_until_params_choose(tmp_path: Path) -> None:
    write_yolo_dataset(tmp_path, a_dataset())
    write_coco_dataset(tmp_path, a_dataset(1, 1, 0))
    with pytest.raises(DataError) as raised:
        detect(tmp_path, AUTO)
    assert str(raised.value) == (
        f"{tmp_path}: 2 layouts at once: yolo by data.yaml; coco by annotations/instances_train.json, "
        "annotations/instances_val.json; choose one of yolo, coco: data.layout in params, or --layout of "
        "`nightowl data inspect`"
    )
    assert len(list_source(tmp_path, DataParams(layout="coco")).images) == 2
    assert len(list_source(tmp_path, DataParams(layout="yolo")).images) == 8


def test_no_layout_is_an_error_that_says_what_is_there_and_what_was_expected(tmp_path: Path) -> None:
    write_image(tmp_path / "photos" / "a.png")
    write_text(tmp_path / "notes.md", "hello")
    with pytest.raises(DataError) as raised:
        detect(tmp_path, AUTO)
    assert str(raised.value) == (
        f"{tmp_path}: no known layout: it holds photos/, notes.md; expected a YOLO data.yaml with `names` and `train`; COCO "
        "JSON in annotations/ or */_annotations.coco.json; or a folder of VOC XML files beside one of images"
    )


def test_no_such_path_and_a_file_and_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone: no such folder; expected the folder of a data set"):
        detect(tmp_path / "gone", AUTO)
    file = write_text(tmp_path / "data.zip", "x")
    with pytest.raises(DataError, match=r"data\.zip: expected the folder of a data set, found a file") as raised:
        detect(file, AUTO)
    assert str(raised.value).endswith(f"name its folder: {tmp_path}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no known layout: it holds nothing"):
        detect(tmp_path / "empty", AUTO)


@pytest.mark.parametrize(
    "file",
    ["data.yaml", "all.json", "annotations/instances_train.json", "train/_annotations.coco.json", "Annotations/a.xml"],
)
def test_a_file_of_a_data_set_is_told_which_folder_to_name(file: str) -> None:
    assert folder_of(Path("/data/line-3") / file) == Path("/data/line-3")


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("yolo", r"a YOLO layout without a yaml that has `names` and `train`"),
        ("coco", r"no COCO file; expected annotations/\*\.json"),
        ("voc", r"no folder of VOC XML files"),
    ],
)
def test_a_layout_that_params_say_but_is_not_there(tmp_path: Path, layout: str, message: str) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(DataError, match=message + ".*it holds x/"):
        list_source(tmp_path, DataParams.model_validate({"layout": layout}))


@pytest.mark.parametrize("write", [write_coco_dataset, write_voc_dataset])
def test_fractions_where_pixels_are_expected_are_an_error(tmp_path: Path, write: Callable[[Path, list[Sample]], Path]) -> None:
    root = write(tmp_path, [Sample("a", (Box(0, 0.25, 0.5, 0.75, 1.0),)), Sample("b", ())])
    with pytest.raises(DataError, match=r"all boxes lie within one pixel: .*expected pixels, are these fractions\?"):
        list_source(root, AUTO)


@pytest.mark.parametrize("write", [write_yolo_dataset, write_coco_dataset, write_voc_dataset])
def test_no_boxes_at_all_is_an_error(tmp_path: Path, write: Callable[[Path, list[Sample]], Path]) -> None:
    root = write(tmp_path, [Sample("a", ()), Sample("b", ())])
    with pytest.raises(DataError, match=r"no boxes at all in 2 images: .*are the labels where this layout has them"):
        list_source(root, AUTO)


@pytest.mark.parametrize("write", [write_yolo_dataset, write_coco_dataset])
def test_lists_in_params_replace_the_splits_of_any_layout(tmp_path: Path, write: Callable[[Path, list[Sample]], Path]) -> None:
    root = write(tmp_path, a_dataset(3, 1, 0))
    write_text(root / "mine" / "train.txt", "train000\ntrain001\n")
    write_text(root / "mine" / "test.txt", "train002\nval000\n")
    listing = list_source(root, DataParams(splits={"train": "mine/train.txt", "test": "mine/test.txt"}))
    assert [image.split for image in listing.images] == ["train", "train", "test", "test"]


def test_a_relative_root_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_yolo_dataset(tmp_path / "here", a_dataset())
    monkeypatch.chdir(tmp_path)
    assert len(list_source(Path("here"), AUTO).images) == 8
