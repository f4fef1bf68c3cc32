import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nightowl.data.formats.coco import split_of_name
from nightowl.data.formats.detect import list_source
from nightowl.data.formats.listing import Listing
from nightowl.data.manifest import Box
from nightowl.errors import DataError
from nightowl.params import DataParams
from tests.datasets import CLASSES, Sample, a_dataset, coco_values, write_coco_dataset, write_image, write_text

Values = dict[str, Any]


def read(root: Path, **params: object) -> Listing:
    return list_source(root, DataParams.model_validate(params))


def single(root: Path, change: Callable[[Values], object] = lambda values: None, **shape: int) -> Path:
    """Two images in `images/` and one `annotations.json`, after `change`."""
    samples = [Sample("a", (Box(0, 1, 2, 11, 22),)), Sample("lot/b", (Box(1, 3, 4, 13, 24),))]
    for seed, sample in enumerate(samples):
        write_image(root / "images" / f"{sample.name}.png", sample.boxes, seed)
    values: Values = coco_values(samples, **shape)
    change(values)
    write_text(root / "annotations.json", json.dumps(values))
    return root


def test_one_file_a_split(tmp_path: Path) -> None:
    listing = read(write_coco_dataset(tmp_path, a_dataset(2, 1, 1)))
    assert (listing.layout, listing.classes, listing.unit) == ("coco", CLASSES, "pixels")
    assert [(i.path, i.split) for i in listing.images] == [
        ("images/train/train000.png", "train"),
        ("images/train/train001.png", "train"),
        ("images/val/val000.png", "val"),
        ("images/test/test000.png", "test"),
    ]
    assert listing.images[0].boxes == (Box(0, 4, 6, 24, 26),)
    assert listing.description.startswith("COCO layout by annotations/instances_train.json (train) 2, ")


def test_a_single_file_with_folders_in_its_names_and_no_split(tmp_path: Path) -> None:
    listing = read(single(tmp_path))
    assert [(i.path, i.split) for i in listing.images] == [("images/a.png", None), ("images/lot/b.png", None)]
    assert listing.images[1].boxes == (Box(1, 3, 4, 13, 24),)


def test_gaps_in_category_ids_close(tmp_path: Path) -> None:
    listing = read(single(tmp_path, first_id=7, step=30))
    assert listing.classes == CLASSES
    assert [image.boxes[0].class_id for image in listing.images] == [0, 1]


def test_category_ids_are_matched_between_files_by_name(tmp_path: Path) -> None:
    root = write_coco_dataset(tmp_path, [Sample("a"), Sample("b", split="val")])
    values = json.loads((root / "annotations" / "instances_val.json").read_text())
    values["categories"] = [{"id": 5, "name": "dent"}, {"id": 9, "name": "scratch"}]
    values["annotations"][0]["category_id"] = 9
    write_text(root / "annotations" / "instances_val.json", json.dumps(values))
    assert [image.boxes[0].class_id for image in read(root).images] == [0, 0]


def test_a_crowd_is_kept_as_ignore(tmp_path: Path) -> None:
    listing = read(single(tmp_path, lambda v: v["annotations"][1].update(iscrowd=1)))
    assert [image.boxes[0].ignore for image in listing.images] == [False, True]


def test_an_image_without_annotations_is_background(tmp_path: Path) -> None:
    listing = read(single(tmp_path, lambda v: v["annotations"].pop()))
    assert listing.images[1].boxes == () and listing.findings == ()


def test_roboflows_files_beside_their_images_and_its_supercategory(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        write_image(tmp_path / split / f"{split}.png")
        values: Values = coco_values([Sample(split)])
        values["categories"] = [
            {"id": 0, "name": "parts", "supercategory": "none"},
            {"id": 1, "name": "scratch", "supercategory": "parts"},
            {"id": 2, "name": "dent", "supercategory": "parts"},
        ]
        write_text(tmp_path / split / "_annotations.coco.json", json.dumps(values))
    listing = read(tmp_path)
    assert listing.classes == CLASSES
    assert [(i.path, i.split, i.boxes[0].class_id) for i in listing.images] == [
        ("train/train.png", "train", 0),
        ("valid/valid.png", "val", 0),
    ]


def test_captions_beside_instances_are_not_read(tmp_path: Path) -> None:
    root = write_coco_dataset(tmp_path, a_dataset(1, 1, 0))
    write_text(root / "annotations" / "captions_train.json", '{"images": [], "annotations": []}')
    assert len(read(root).images) == 2


def test_the_official_folder_names(tmp_path: Path) -> None:
    write_image(tmp_path / "train2017" / "a.png")
    write_text(tmp_path / "annotations" / "instances_train2017.json", json.dumps(coco_values([Sample("a")])))
    assert [(i.path, i.split) for i in read(tmp_path).images] == [("train2017/a.png", "train")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v["categories"].append({"id": 1, "name": "x"}), "category id 1 occurs more than once; ids must differ"),
        (lambda v: v["categories"].append({"id": 3, "name": "dent"}), "class names must differ, but 'dent'"),
        (lambda v: v["images"].append(v["images"][0]), "image id 0 occurs more than once"),
        (lambda v: v["images"][1].update(file_name="a.png"), "images 0 and 1 are both images/a.png; keep one"),
        (lambda v: v["images"][0].update(file_name="../../etc/a.png"), "image 0: file_name '../../etc/a.png' is not inside"),
        (lambda v: v["images"][0].update(id="x"), "expected a whole number under `id`, found 'x'"),
        (lambda v: v.update(annotations={}), "expected a list of objects under `annotations`, found dict"),
        (lambda v: v["annotations"].clear(), "no boxes at all in 2 images"),
        (lambda v: v["images"].clear(), "no images"),
        (lambda v: v["annotations"][0].update(category_id=[1]), "expected a whole number under `category_id`"),
    ],
)
def test_a_faulty_file_is_an_error(tmp_path: Path, change: Callable[[Values], object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(single(tmp_path, change))


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (
            lambda v: v["annotations"][0].update(image_id=99),
            ("label_without_image", "annotations.json", "annotation 0 of annotations.json: no image id 99"),
        ),
        (
            lambda v: v["annotations"][0].update(image_id=[0]),
            ("label_without_image", "annotations.json", "annotation 0 of annotations.json: no image id [0]"),
        ),
        (
            lambda v: v["annotations"][0].update(bbox=[10**309, 2, 3, 4]),
            ("unparsable_label", "images/a.png", f"annotation 0 of annotations.json: bbox is [1{'0' * 78}, not 4 numbers"),
        ),
        (
            lambda v: v["annotations"][0].update(bbox=[1, 2, 3]),
            ("unparsable_label", "images/a.png", "annotation 0 of annotations.json: bbox is [1, 2, 3], not 4 numbers"),
        ),
        (
            lambda v: v["annotations"][0].update(bbox=[1, 2, 3, None]),
            ("unparsable_label", "images/a.png", "annotation 0 of annotations.json: bbox is [1, 2, 3, None], not 4 numbers"),
        ),
        (
            lambda v: v["images"][0].update(file_name="gone.png"),
            ("label_without_image", "images/gone.png", "listed in annotations.json, but there is no such file"),
        ),
    ],
)
def test_a_faulty_row_is_a_finding(tmp_path: Path, change: Callable[[Values], object], finding: tuple[str, str, str]) -> None:
    listing = read(single(tmp_path, change))
    assert [(f.kind, f.path, f.detail) for f in listing.findings] == [finding]
    assert all(f.action == "left out" for f in listing.findings)


def test_broken_json_is_named(tmp_path: Path) -> None:
    root = single(tmp_path)
    write_text(root / "annotations.json", '{"images": [')
    with pytest.raises(DataError, match=r"annotations\.json: not readable as JSON"):
        read(root)


def test_images_that_are_nowhere_are_said_with_the_folders_tried(tmp_path: Path) -> None:
    root = single(tmp_path)
    (root / "images").rename(root / "pictures")
    with pytest.raises(
        DataError, match=r"'a\.png' is in none of these folders of .*: \(top\); name their folder: --images FOLDER"
    ):
        read(root)
    assert len(read(root, images="pictures").images) == 2


def test_two_files_for_one_split_need_a_choice(tmp_path: Path) -> None:
    root = write_coco_dataset(tmp_path, a_dataset(1, 1, 0))
    write_text(root / "annotations" / "instances_train2.json", (root / "annotations" / "instances_train.json").read_text())
    with pytest.raises(DataError, match=r"expected one COCO file a split, found .*say which in params data\.splits"):
        read(root)
    chosen = {"train": "annotations/instances_train2.json", "val": "annotations/instances_val.json"}
    assert {image.split for image in read(root, splits=chosen).images} == {"train", "val"}


def test_params_decide_the_order_of_classes(tmp_path: Path) -> None:
    root = single(tmp_path)
    assert [i.boxes[0].class_id for i in read(root, classes=("dent", "scratch")).images] == [1, 0]


def test_a_box_whose_name_params_do_not_have_is_a_finding(tmp_path: Path) -> None:
    listing = read(single(tmp_path), classes=("scratch",))
    assert (listing.classes, [len(image.boxes) for image in listing.images]) == (("scratch",), [1, 0])
    (finding,) = listing.findings
    assert (finding.kind, finding.action) == ("unknown_class", "box quarantined")
    assert "class 'dent', which params data.classes does not name (scratch)" in finding.detail


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("annotations/instances_train2017.json", "train"),
        ("annotations/instances_val2017.json", "val"),
        ("valid/_annotations.coco.json", "val"),
        ("test/_annotations.coco.json", "test"),
        ("annotations/my-test-set.json", "test"),
        ("annotations/trainval.json", None),
        ("annotations/latest.json", None),
        ("annotations.json", None),
    ],
)
def test_the_split_that_a_name_says(path: str, split: str | None) -> None:
    assert split_of_name(path) == split
