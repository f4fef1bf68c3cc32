from pathlib import Path

import pytest

from nightowl.data.formats.detect import list_source
from nightowl.data.formats.unread import unread_images
from nightowl.errors import DataError
from nightowl.params import DataParams
from tests.datasets import a_dataset, write_coco_dataset, write_text, write_yolo_dataset


def test_images_of_a_kind_that_is_not_read_are_one_finding_with_counts(tmp_path: Path) -> None:
    root = write_yolo_dataset(tmp_path, a_dataset())
    for name in ("train/a.heic", "train/b.HEIC", "later/c.gif"):
        write_text(root / "images" / name, "x")
    (finding,) = list_source(root, DataParams()).findings
    assert (finding.kind, finding.action) == ("unread_kind", "left out")
    assert finding.detail == (
        "3 files look like images, but are of a kind that is not read (2 .heic, 1 .gif; first: images/later/c.gif); "
        "read are .bmp, .jpeg, .jpg, .png, .tif, .tiff, .webp: convert them"
    )


def test_pictures_elsewhere_in_the_folder_are_nobodys_business(tmp_path: Path) -> None:
    root = write_coco_dataset(tmp_path, a_dataset())
    write_text(root / "docs" / "logo.gif", "x")
    assert list_source(root, DataParams()).findings == ()


@pytest.mark.parametrize(("images", "found"), [([], 2), (["a.png"], 2), (["x/a.png"], 1), (["y/a.png"], 0)])
def test_it_looks_where_images_are_and_everywhere_when_there_are_none(tmp_path: Path, images: list[str], found: int) -> None:
    write_text(tmp_path / "x" / "b.jfif", "x")
    write_text(tmp_path / "z" / "c.nef", "x")
    (tmp_path / "y").mkdir()
    findings = unread_images(tmp_path, images)
    assert [finding.detail.split()[0] for finding in findings] == ([str(found)] if found else [])


def test_a_data_set_of_nothing_else_says_why_it_has_no_images(tmp_path: Path) -> None:
    write_text(tmp_path / "data.yaml", "train: images\nnames: [a]\n")
    write_text(tmp_path / "images" / "a.heic", "x")
    with pytest.raises(DataError, match=r"no images: .*; 1 file looks like an image, but is of a kind that is not read"):
        list_source(tmp_path, DataParams())
