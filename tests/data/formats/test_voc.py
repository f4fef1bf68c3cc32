from pathlib import Path

import pytest

from nightowl.data.formats.detect import list_source
from nightowl.data.formats.listing import Listing
from nightowl.data.manifest import Box
from nightowl.errors import DataError
from nightowl.params import DataParams
from tests.datasets import Sample, a_dataset, voc_xml, write_image, write_text, write_voc_dataset

TWO = (Sample("a", (Box(0, 1, 2, 11, 22),)), Sample("b", (Box(1, 3, 4, 13, 24, ignore=True),), "val"))


def read(root: Path, **params: object) -> Listing:
    return list_source(root, DataParams.model_validate(params))


def test_the_standard_layout(tmp_path: Path) -> None:
    listing = read(write_voc_dataset(tmp_path, a_dataset(2, 1, 1)))
    assert (listing.layout, listing.classes, listing.unit) == ("voc", ("dent", "scratch"), "pixels")
    assert [(i.path, i.split) for i in listing.images] == [
        ("JPEGImages/train000.png", "train"),
        ("JPEGImages/train001.png", "train"),
        ("JPEGImages/val000.png", "val"),
        ("JPEGImages/test000.png", "test"),
    ]
    assert listing.findings == ()
    assert listing.description.startswith(
        "VOC layout: XML in Annotations/, images in JPEGImages/: 4 images. Splits by ImageSets"
    )


def test_corners_are_kept_as_written_and_difficult_becomes_ignore(tmp_path: Path) -> None:
    listing = read(write_voc_dataset(tmp_path, TWO), classes=("scratch", "dent"))
    assert [image.boxes for image in listing.images] == [sample.boxes for sample in TWO]


def test_a_name_that_params_do_not_have_is_a_finding_with_file_object_and_names(tmp_path: Path) -> None:
    listing = read(write_voc_dataset(tmp_path, TWO), classes=("scratch",))
    assert (listing.classes, [len(image.boxes) for image in listing.images]) == (("scratch",), [1, 0])
    (finding,) = listing.findings
    assert (finding.kind, finding.path, finding.action) == ("unknown_class", "JPEGImages/b.png", "box quarantined")
    assert finding.detail == (
        "b.xml object 1: class 'dent', which params data.classes does not name (scratch); add the name there or correct "
        "the label"
    )


def test_names_in_params_must_be_names(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"params data\.classes: class names must differ"):
        read(write_voc_dataset(tmp_path, TWO), classes=("scratch", "scratch"))


def test_parts_that_params_name(tmp_path: Path) -> None:
    root = write_voc_dataset(tmp_path, TWO)
    (root / "JPEGImages").rename(root / "pics")
    (root / "Annotations").rename(root / "boxes")
    with pytest.raises(
        DataError, match=r"expected one images folder .* beside boxes/, found 0; .*name it in params data.images"
    ):
        read(root)
    assert len(read(root, images="pics", annotations="boxes").images) == 2
    with pytest.raises(DataError, match=r"params data\.images: nowhere: no such folder inside"):
        read(root, images="nowhere")
    with pytest.raises(DataError, match=r"params data.annotations: \.\./x: no such folder inside"):
        read(root, annotations="../x", layout="voc")


def test_xml_beside_the_images_of_each_split_as_roboflow_has_it(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        write_image(tmp_path / split / f"{split}.png")
        write_text(tmp_path / split / f"{split}.xml", voc_xml(TWO[0].boxes))
    listing = read(tmp_path)
    assert [(i.path, i.split) for i in listing.images] == [("train/train.png", "train"), ("valid/valid.png", "val")]


def test_without_lists_no_image_has_a_split(tmp_path: Path) -> None:
    root = write_voc_dataset(tmp_path, TWO)
    for file in (root / "ImageSets" / "Main").iterdir():
        file.unlink()
    assert {image.split for image in read(root).images} == {None}


def test_trainval_stands_for_train_where_there_is_no_train(tmp_path: Path) -> None:
    root = write_voc_dataset(tmp_path, TWO)
    (root / "ImageSets" / "Main" / "train.txt").rename(root / "ImageSets" / "Main" / "trainval.txt")
    assert [image.split for image in read(root).images] == ["train", "val"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a", "the name"),
        ("a.png", "the file name"),
        ("JPEGImages/a.png", "the path"),
        ("./JPEGImages\\a.png", "a path of Windows"),
        ("a  1", "VOC's second column"),
        ("\ufeffa\r", "a byte order mark and CRLF"),
    ],
)
def test_a_list_may_name_an_image_in_several_ways(tmp_path: Path, line: str, reason: str) -> None:
    root = write_voc_dataset(tmp_path, TWO)
    write_text(root / "mine.txt", line + "\n")
    listing = read(root, splits={"train": "mine.txt"})
    assert [image.path for image in listing.images] == ["JPEGImages/a.png"], reason
    assert [(f.kind, f.path) for f in listing.findings] == [("image_without_split", "JPEGImages/b.png")]


def test_a_listed_name_without_an_image_is_said(tmp_path: Path) -> None:
    root = write_voc_dataset(tmp_path, TWO)
    write_text(root / "ImageSets" / "Main" / "train.txt", "a\nabsent\n")
    (finding,) = read(root).findings
    assert (finding.kind, finding.path) == ("label_without_image", "absent")
    assert finding.detail == "ImageSets/Main/train.txt names it, but there is no such annotated image"


def test_lists_that_fit_nothing_or_too_much_are_errors(tmp_path: Path) -> None:
    root = write_voc_dataset(tmp_path, TWO)
    write_text(root / "none.txt", "x\ny\n")
    with pytest.raises(DataError, match=r"none\.txt: none of the names is an image of .*; correct the lists"):
        read(root, splits={"train": "none.txt"})
    with pytest.raises(DataError, match=r"params data\.splits\.val: gone\.txt: no such file inside"):
        read(root, splits={"val": "gone.txt"})
    for folder in ("x", "y"):
        write_image(root / "JPEGImages" / folder / "same.png")
        write_text(root / "Annotations" / folder / "same.xml", voc_xml(()))
    write_text(root / "ImageSets" / "Main" / "train.txt", "a\nsame\n")
    with pytest.raises(DataError, match=r"same may be JPEGImages/x/same\.png or JPEGImages/y/same\.png"):
        read(root)


def test_images_without_xml_are_left_out_and_xml_without_image_is_said(tmp_path: Path) -> None:
    root = write_voc_dataset(tmp_path, TWO)
    write_image(root / "JPEGImages" / "new.png")
    write_text(root / "Annotations" / "gone.xml", voc_xml(()))
    assert {(f.kind, f.path, f.action) for f in read(root).findings} == {
        ("image_without_label", "JPEGImages/new.png", "left out"),
        ("label_without_image", "Annotations/gone.xml", "left out"),
    }


def test_xml_without_objects_is_background(tmp_path: Path) -> None:
    listing = read(write_voc_dataset(tmp_path, [*TWO, Sample("c", ())]))
    assert [image.boxes for image in listing.images if image.path.endswith("c.png")] == [()]
    assert listing.findings == ()


@pytest.mark.parametrize(
    ("xml", "action", "detail"),
    [
        ("<annotation><object>", "image quarantined", "c.xml: not XML: no element found"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><annotation/>", "image quarantined", "c.xml: declares entities"),
        ("<annotation><object><name/></object></annotation>", "left out", "c.xml object 1: no name"),
        ("<annotation><object><name>dent</name></object></annotation>", "left out", "c.xml object 1: bndbox"),
        (voc_xml((Box(0, 1, 2, 3, 4),)).replace(">1<", ">one<"), "left out", "expected four numbers"),
        (voc_xml((Box(0, 1, 2, 3, 4),)).replace(">1<", ">nan<"), "left out", "expected finite numbers"),
    ],
)
def test_unreadable_xml_is_a_finding(tmp_path: Path, xml: str, action: str, detail: str) -> None:
    root = write_voc_dataset(tmp_path, [*TWO, Sample("c")])
    write_text(root / "Annotations" / "c.xml", xml)
    listing = read(root)
    (finding,) = listing.findings
    assert (finding.kind, finding.path, finding.action) == ("unparsable_label", "JPEGImages/c.png", action)
    assert detail in finding.detail
    kept = "JPEGImages/c.png" in [image.path for image in listing.images]
    assert kept == (action == "left out")


def test_two_images_of_one_name_cannot_share_an_xml_file(tmp_path: Path) -> None:
    root = write_voc_dataset(tmp_path, TWO)
    write_image(root / "JPEGImages" / "a.jpg")
    with pytest.raises(DataError, match=r"JPEGImages/a\.jpg and JPEGImages/a\.png would share one XML file"):
        read(root)
