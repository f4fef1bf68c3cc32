from collections.abc import Callable
from pathlib import Path

import pytest

from nightowl.data.formats.detect import list_source
from nightowl.data.formats.listing import Labelled, Listing
from nightowl.data.formats.yolo_labels import label_path, parse_line
from nightowl.data.manifest import Box
from nightowl.errors import DataError
from nightowl.params import DataParams
from tests.datasets import CLASSES, Sample, a_dataset, write_image, write_text, write_yolo_dataset, yolo_line

LINE = "0 0.5 0.5 0.25 0.5\n"
BOX = Box(0, 0.375, 0.25, 0.625, 0.75)


def read(root: Path, **params: object) -> Listing:
    return list_source(root, DataParams.model_validate(params))


def listed(listing: Listing) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for image in listing.images:
        found.setdefault(str(image.split), []).append(image.path)
    return found


def one_image(root: Path, label: str | bytes | None = LINE, yaml: str = "train: images\nnames: [scratch, dent]\n") -> Path:
    write_image(root / "images" / "a.png")
    if label is not None:
        write_text(root / "labels" / "a.txt", label)
    write_text(root / "data.yaml", yaml)
    return root


def test_the_standard_layout(tmp_path: Path) -> None:
    listing = read(write_yolo_dataset(tmp_path, a_dataset(2, 1, 1)))
    assert (listing.layout, listing.classes, listing.unit) == ("yolo", CLASSES, "fractions")
    assert listed(listing) == {
        "train": ["images/train/train000.png", "images/train/train001.png"],
        "val": ["images/val/val000.png"],
        "test": ["images/test/test000.png"],
    }
    assert listing.description == "YOLO layout by data.yaml: train 2, val 1, test 1 images"
    assert listing.findings == ()


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ("names: [scratch, dent]", "a list"),
        ("names:\n  0: scratch\n  1: dent", "a mapping"),
        ("names:\n  1: dent\n  0: scratch", "a mapping in another order"),
        ("names:\n  '0': scratch\n  '1': dent", "ids as text"),
        ("nc: 2\nnames: [scratch, dent]", "with their number"),
    ],
)
def test_names_as_a_list_or_a_mapping(tmp_path: Path, names: str, reason: str) -> None:
    assert read(one_image(tmp_path, yaml=f"train: images\n{names}\n")).classes == CLASSES, reason


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("train: images\nnames: {0: a, 2: b}", "names: expected the ids 0 to 1, found 0, 2"),
        ("train: images\nnames: []", "names: no class names; expected at least one"),
        ("train: images\nnames: [a, a]", "names: class names must differ, but 'a' occurs more than once"),
        ("train: images\nnames: [[a], b]", r"expected a word or a number for a class name, found \['a'\]"),
        ('train: images\nnames: ["a\\nb", b]', r"expected a word or a number for a class name, found 'a\\nb'"),
        ("train: images\nnames: [a, '']", "names: class 1 has an empty name"),
        ("train: images\nnames: 3", "names: expected a list, or a mapping from id to name, found 3"),
        ("train: images\nnc: 3\nnames: [a, b]", r"nc is 3, but there are 2 names \(a, b\); correct one"),
        ("names: [a, b]", "none of `train`, `val`, `test`; expected at least `train`"),
        ("train: 3\nnames: [a, b]", "train: expected a path or a list of paths, found 3"),
        ("train: nowhere\nnames: [a, b]", "train: nowhere: no such folder or list file"),
        ("train: ../../x\nnames: [a, b]", r"train: \.\./\.\./x: leads out of the source folder"),
        ("train: /etc\nnames: [a, b]", "train: /etc: leads out of the source folder"),
        ("train: data.yaml\nnames: [a, b]", "expected a folder of images or a .txt file"),
        ("train: images\nval: images\nvalid: images\nnames: [a, b]", "both `val` and `valid` are given; keep one"),
        ("train: [images\nnames: [a, b]", "not readable as YAML"),
        (
            "train: images\nkpt_shape: [17, 2]\nnames: [a]",
            "kpt_shape: these are labels of key points; nightowl trains detection",
        ),
        ("- a\n- b", "expected `names`, `train` and `val`, found list"),
    ],
)
def test_a_faulty_yaml_is_an_error_that_names_it(tmp_path: Path, yaml: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as raised:
        read(one_image(tmp_path, yaml=yaml))
    assert str(tmp_path / "data.yaml") in str(raised.value)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ("train: images/train\nval: images/val", "folders"),
        ("train: [images/train]\nval: [images/val]", "lists of folders"),
        ("path: images\ntrain: train\nval: val", "`path` relative to the yaml"),
        ("path: .\ntrain: ./images/train\nval: images/val/", "dots and slashes"),
        ("train: ../images/train\nval: ../images/val", "Roboflow's `../`, which means this folder"),
        ("train: images\\train\nval: images\\val", "Windows separators"),
        ("train: images/train\nvalidation: images/val", "another word for val"),
        ("train: train.txt\nval: val.txt", "lists of files"),
        ("path: /content/on/another/machine\ntrain: images/train\nval: images/val", "the author's own path"),
    ],
)
def test_every_way_to_name_the_images(tmp_path: Path, entries: str, reason: str) -> None:
    write_yolo_dataset(tmp_path, a_dataset(2, 1, 0))
    write_text(tmp_path / "data.yaml", f"{entries}\nnames: [scratch, dent]\n")
    write_text(tmp_path / "train.txt", "\ufeff./images/train/train000.png\r\nimages/train/train001.png\r\n\r\n")
    write_text(tmp_path / "val.txt", "images\\val\\val000.png\n")
    listing = read(tmp_path)
    assert listed(listing) == {
        "train": ["images/train/train000.png", "images/train/train001.png"],
        "val": ["images/val/val000.png"],
    }, reason
    assert all(image.boxes for image in listing.images)


def test_a_path_of_another_machine_is_said(tmp_path: Path) -> None:
    listing = read(one_image(tmp_path, yaml="path: /content/x\ntrain: images\nnames: [a, b]\n"))
    assert "`path: /content/x` is not a folder in the source, so entries are taken relative to the yaml" in listing.description


def test_a_test_folder_that_roboflow_names_but_does_not_export_counts_as_not_given(tmp_path: Path) -> None:
    listing = read(one_image(tmp_path, yaml="train: images\ntest: ../test/images\nnames: [a, b]\n"))
    assert listed(listing) == {"train": ["images/a.png"]}
    assert "`test: ../test/images` does not exist, so it counts as not given" in listing.description


def test_roboflows_folders(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        write_image(tmp_path / split / "images" / f"{split}.jpg")
        write_text(tmp_path / split / "labels" / f"{split}.txt", LINE)
    write_text(
        tmp_path / "data.yaml", "train: ../train/images\nval: ../valid/images\ntest: ../test/images\nnc: 1\nnames: ['a']\n"
    )
    assert listed(read(tmp_path)) == {
        "train": ["train/images/train.jpg"],
        "val": ["valid/images/valid.jpg"],
        "test": ["test/images/test.jpg"],
    }


def test_a_sibling_folder_is_not_read_though_the_yaml_names_it(tmp_path: Path) -> None:
    write_image(tmp_path / "train" / "images" / "other.png")
    with pytest.raises(DataError, match="leads out of the source folder"):
        read(one_image(tmp_path / "mine", yaml="train: ../train/images\nnames: [a, b]\n"))


def test_links_inside_the_folder_are_followed_and_circles_end(tmp_path: Path) -> None:
    root = write_yolo_dataset(tmp_path / "mine", [Sample("a")])
    write_image(tmp_path / "store" / "b.png")
    (root / "images" / "train" / "linked").symlink_to(tmp_path / "store")
    (root / "images" / "train" / "linked" / "circle").symlink_to(root / "images")
    assert "images/train/linked/b.png" in listed(read(root))["train"]


@pytest.mark.parametrize(
    ("line", "box", "reason"),
    [
        ("0 0.5 0.5 0.25 0.5", BOX, "plain"),
        ("0\t0.5\t0.5\t0.25\t0.5", BOX, "tabs"),
        ("0,0.5,0.5,0.25,0.5", BOX, "commas"),
        ("0, 0.5, 0.5, 0.25, 0.5", BOX, "commas and spaces"),
        ("  0 .5 5e-1 0.25 0.5  ", BOX, "spaces around, other number forms"),
        ("0.0 0.5 0.5 0.25 0.5", BOX, "a class written as a float"),
        ("0 0.375 0.25 0.625 0.25 0.5 0.75", BOX, "a polygon of three points"),
        ("1 0.1 0.1 0.4 0.1 0.4 0.3 0.1 0.3", Box(1, 0.1, 0.1, 0.4, 0.3), "a polygon of four"),
    ],
)
def test_a_line_becomes_a_box(line: str, box: Box, reason: str) -> None:
    parsed = parse_line(line)
    assert isinstance(parsed, Box), reason
    assert parsed == pytest.approx(box), reason


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("scratch 0.5 0.5 0.25 0.5", "expected numbers"),
        ("0 0,5 0,5 0,25 0,5", "expected numbers"),
        ("0 0.5 0.5 0.25", "expected a class and 4 numbers, or a class and at least 3 points, found 4 numbers"),
        ("0 0.5 0.5 0.25 0.5 0.99", "found 6 numbers"),
        ("0", "found 1 numbers"),
        ("0 nan 0.5 0.25 0.5", "expected finite numbers"),
        ("0 inf 0.5 0.25 0.5", "expected finite numbers"),
        ("0.5 0.5 0.5 0.25 0.5", "expected a whole class id, found 0.5"),
        ("0 320 240 50 50", "expected fractions of the image's sides (0 to 1), found 320; are these pixels?"),
        ("0 10 -700 50 50 20 30", "found -700; are these pixels?"),
    ],
)
def test_a_line_that_cannot_be_read_says_why(line: str, fault: str) -> None:
    parsed = parse_line(line)
    assert isinstance(parsed, str) and fault in parsed


def test_an_unreadable_line_is_a_finding_and_the_others_stay(tmp_path: Path) -> None:
    listing = read(one_image(tmp_path, label=LINE + "rubbish\n" + "1 0.5 0.5 0.1 0.1\n"))
    assert len(listing.images[0].boxes) == 2
    (finding,) = listing.findings
    assert (finding.kind, finding.path, finding.action) == ("unparsable_label", "images/a.png", "left out")
    assert finding.detail == "labels/a.txt line 2: expected numbers: 'rubbish'"


@pytest.mark.parametrize("label", ["\ufeff" + LINE, LINE.replace("\n", "\r\n"), LINE + "\n\n"])
def test_byte_order_mark_crlf_and_empty_lines_are_tolerated(tmp_path: Path, label: str) -> None:
    listing = read(one_image(tmp_path, label=label))
    assert listing.images == (Labelled("images/a.png", "train", (BOX,)),)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text, None),
        (lambda text: "\ufeff" + text, "2 label files begin with a byte order mark; read all the same"),
        (lambda text: text.replace("\n", "\r\n"), "2 label files end their lines in CRLF; read all the same"),
        (lambda text: text.replace(" ", ", "), "2 label files have commas between the numbers; read all the same"),
        (
            lambda text: text + "0 .5 .5 .1 .1 .2 .3 .4 .5\n",
            "2 label files have objects of four corners, like oriented boxes (OBB), of which the upright box is taken; "
            "read all the same",
        ),
    ],
)
def test_an_unusual_form_is_said_once_with_the_number_of_files(
    tmp_path: Path, change: Callable[[str], str], said: str | None
) -> None:
    root = write_yolo_dataset(tmp_path, [Sample("a"), Sample("b")])
    for name in "ab":
        write_text(root / "labels" / "train" / f"{name}.txt", change(LINE))
    found = [(f.kind, f.path, f.detail, f.action) for f in read(root).findings]
    assert found == ([("label_format", "labels/train/a.txt", said, "kept")] if said else [])


@pytest.mark.parametrize("number", [2, -1, 80])
def test_a_class_id_outside_the_names_is_a_finding_with_file_line_id_and_count(tmp_path: Path, number: int) -> None:
    listing = read(one_image(tmp_path, label=LINE + f"{number} 0.5 0.5 0.1 0.1\n"))
    assert listing.images[0].boxes == (BOX,)
    (finding,) = listing.findings
    assert (finding.kind, finding.path, finding.action) == ("unknown_class", "images/a.png", "box quarantined")
    assert finding.detail == (
        f"labels/a.txt line 2: class id {number}, but data.yaml has 2 names (ids 0 to 1); add the name or correct the label"
    )


def test_an_empty_label_file_is_background_and_a_missing_one_is_said(tmp_path: Path) -> None:
    root = write_yolo_dataset(tmp_path, [Sample("a"), Sample("empty", ()), Sample("missing", ())])
    (root / "labels" / "train" / "missing.txt").unlink()
    listing = read(root)
    assert [image.boxes for image in listing.images][1:] == [(), ()]
    assert [(f.kind, f.path, f.action) for f in listing.findings] == [
        ("image_without_label", "images/train/missing.png", "kept")
    ]


def test_a_label_file_that_is_no_text_quarantines_its_image(tmp_path: Path) -> None:
    root = write_yolo_dataset(tmp_path, [Sample("a"), Sample("b")])
    write_text(root / "labels" / "train" / "b.txt", b"\xff\xfe\x00\x80")
    listing = read(root)
    assert [image.path for image in listing.images] == ["images/train/a.png"]
    assert [(f.kind, f.path, f.action) for f in listing.findings] == [
        ("unparsable_label", "images/train/b.png", "image quarantined")
    ]


def test_labels_without_an_image_and_images_without_a_split_are_said(tmp_path: Path) -> None:
    root = write_yolo_dataset(tmp_path, [Sample("a"), Sample("unlisted")])
    write_text(root / "labels" / "train" / "gone.txt", LINE)
    write_text(root / "labels" / "train" / "classes.txt", "scratch\ndent\n")
    write_text(root / "train.txt", "images/train/a.png\nimages/train/absent.png\n")
    write_text(root / "data.yaml", "train: train.txt\nnames: [scratch, dent]\n")
    findings = {(f.kind, f.path, f.detail) for f in read(root).findings}
    assert findings == {
        ("label_without_image", "labels/train/gone.txt", "no image of this name"),
        ("label_without_image", "images/train/absent.png", "listed, but there is no such file"),
        ("image_without_split", "images/train/unlisted.png", "has labels, but no split lists it"),
    }


def test_a_list_that_leads_out_is_an_error(tmp_path: Path) -> None:
    root = one_image(tmp_path, yaml="train: list.txt\nnames: [a, b]\n")
    write_text(root / "list.txt", "/etc/passwd.png\n")
    with pytest.raises(DataError, match=r"list\.txt: /etc/passwd\.png: expected an image inside the source folder"):
        read(root)


@pytest.mark.parametrize(
    ("image", "label"),
    [
        ("images/train/a.jpg", "labels/train/a.txt"),
        ("train/images/a.jpg", "train/labels/a.txt"),
        ("images/images/a.b.jpg", "images/labels/a.b.txt"),
        ("lot/a.jpg", "lot/a.txt"),
        ("myimages/a.jpg", "myimages/a.txt"),
    ],
)
def test_where_labels_lie(image: str, label: str) -> None:
    assert label_path(image) == label


def test_two_descriptions_need_a_choice(tmp_path: Path) -> None:
    root = one_image(tmp_path)
    write_text(root / "other.yaml", "train: images\nnames: [x, y]\n")
    with pytest.raises(DataError, match=r"several YOLO descriptions: data.yaml, other.yaml; name the one to use"):
        read(root)
    assert read(root, annotations="other.yaml").classes == ("x", "y")


def test_without_a_yaml_the_names_come_from_params_and_the_splits_from_folders(tmp_path: Path) -> None:
    root = write_yolo_dataset(tmp_path, a_dataset(2, 1, 1))
    (root / "data.yaml").unlink()
    with pytest.raises(DataError, match=r"add a data\.yaml, or give the names in params data\.classes"):
        read(root)
    listing = read(root, classes=CLASSES)
    assert {split: len(paths) for split, paths in listed(listing).items()} == {"train": 2, "val": 1, "test": 1}


def test_params_decide_the_order_of_classes(tmp_path: Path) -> None:
    root = write_yolo_dataset(tmp_path, [Sample("a", (Box(0, 1, 1, 9, 9),)), Sample("b", (Box(1, 1, 1, 9, 9),))])
    assert [i.boxes[0].class_id for i in read(root, classes=("dent", "scratch")).images] == [1, 0]


def test_a_box_whose_name_params_do_not_have_is_a_finding_with_file_and_line(tmp_path: Path) -> None:
    listing = read(one_image(tmp_path, label=LINE + "1 0.5 0.5 0.1 0.1\n"), classes=("scratch",))
    assert (listing.classes, listing.images[0].boxes) == (("scratch",), (BOX,))
    (finding,) = listing.findings
    assert (finding.kind, finding.path, finding.action) == ("unknown_class", "images/a.png", "box quarantined")
    assert finding.detail == (
        "labels/a.txt line 2: class 'dent', which params data.classes does not name (scratch); add the name there or correct "
        "the label"
    )


def test_an_images_folder_beside_a_yaml_that_names_its_own_is_refused(tmp_path: Path) -> None:
    root = one_image(tmp_path)
    with pytest.raises(DataError, match=r"params data\.images: images: .*data\.yaml says itself where its images are"):
        read(root, images="images")
    (root / "data.yaml").unlink()
    write_image(root / "others" / "b.png")
    assert [image.path for image in read(root, images="images", classes=CLASSES).images] == ["images/a.png"]


def test_a_line_written_from_a_box_reads_back(tmp_path: Path) -> None:
    parsed = parse_line(yolo_line(Box(1, 4, 6, 24, 26)))
    assert isinstance(parsed, Box)
    assert parsed == pytest.approx((1, 4 / 64, 6 / 48, 24 / 64, 26 / 48, False))
