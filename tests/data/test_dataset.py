import json
import os
from pathlib import Path

import pytest

from nightowl.data.dataset import read_source
from nightowl.data.manifest import Box
from nightowl.errors import DataError
from nightowl.params import DataParams
from tests.datasets import Sample, a_dataset, write_coco_dataset, write_text, write_voc_dataset, write_yolo_dataset


def test_boxes_come_in_pixels_and_images_in_order_of_path(tmp_path: Path) -> None:
    box = Box(1, 4, 6, 24, 26)
    samples = [Sample("z", (box,)), *a_dataset()]
    dataset = read_source(write_yolo_dataset(tmp_path, samples), DataParams())
    paths = [image.path for image in dataset.images]
    assert paths == sorted(paths)
    (found,) = next(image for image in dataset.images if image.path.endswith("z.png")).boxes
    assert max(abs(a - b) for a, b in zip(found, box, strict=True)) < 1e-4
    assert dataset.num_images() == {"train": 5, "val": 2, "test": 2}


def test_findings_are_in_one_order_whatever_the_order_of_reading(tmp_path: Path) -> None:
    root = write_yolo_dataset(tmp_path, a_dataset())
    write_text(root / "images" / "val" / "val000.png", "no image")
    write_text(root / "labels" / "train" / "train001.txt", "rubbish\nmore rubbish\n")
    findings = read_source(root, DataParams()).findings
    assert [(finding.kind, finding.path) for finding in findings] == [
        ("unparsable_label", "images/train/train001.png"),
        ("unparsable_label", "images/train/train001.png"),
        ("unreadable_image", "images/val/val000.png"),
    ]


def test_boxes_are_the_same_in_memory_and_in_a_manifest(tmp_path: Path) -> None:
    root = write_yolo_dataset(tmp_path, a_dataset())
    write_text(root / "labels" / "train" / "train000.txt", "0 0.33333333 0.5 0.2 0.2\n")
    boxes = [box for image in read_source(root, DataParams()).images for box in image.boxes]
    assert all(value == round(value, 3) for box in boxes for value in box[1:5])


@pytest.mark.parametrize(
    ("width", "height", "said", "reason"),
    [
        (64, 48, None, "as it is"),
        (640, 480, "its labels say 640x480, the image is 64x48", "labelled at another size"),
        (
            48,
            64,
            "its labels say 48x64, the image is 64x48: stored so, and turned by its EXIF orientation?",
            "labelled unturned",
        ),
        (0, 0, None, "tools write zeros for what they do not know"),
        (None, "", None, "not said"),
    ],
)
def test_a_size_in_labels_that_is_not_the_images_is_a_finding(
    tmp_path: Path, width: object, height: object, said: str | None, reason: str
) -> None:
    coco = write_coco_dataset(tmp_path / "coco", a_dataset())
    path = coco / "annotations" / "instances_train.json"
    values = json.loads(path.read_text())
    values["images"][0].update(width=width, height=height)
    write_text(path, json.dumps(values))
    voc = write_voc_dataset(tmp_path / "voc", a_dataset())
    xml = voc / "Annotations" / "train000.xml"
    size = f"<annotation><size><width>{width}</width><height>{height}</height></size>"
    write_text(xml, xml.read_text().replace("<annotation>", size))
    for root in (coco, voc):
        found = [(f.kind, f.detail, f.action) for f in read_source(root, DataParams()).findings]
        assert found == ([("size_mismatch", said, "kept")] if said else []), reason


def test_a_box_beyond_what_a_number_can_say_is_quarantined_and_the_rest_kept(tmp_path: Path) -> None:
    root = write_coco_dataset(tmp_path, a_dataset())
    path = root / "annotations" / "instances_train.json"
    values = json.loads(path.read_text())
    endless = values["annotations"][0] | {"id": 99, "bbox": [1e308, 5, 1e308, 5]}
    write_text(path, json.dumps(values | {"annotations": [*values["annotations"], endless]}))
    dataset = read_source(root, DataParams())
    assert [len(image.boxes) for image in dataset.images if "train000" in image.path] == [1]
    assert [(finding.kind, finding.action) for finding in dataset.findings] == [("out_of_frame_box", "box quarantined")]


def test_a_file_name_that_is_no_text_is_named(tmp_path: Path) -> None:
    root = write_yolo_dataset(tmp_path, a_dataset())
    (root / "images" / "train" / "train000.png").rename(root / "images" / "train" / os.fsdecode(b"\xff.png"))
    with pytest.raises(DataError, match=r"expected file names in UTF-8, found images/train/\\udcff\.png"):
        read_source(root, DataParams())
