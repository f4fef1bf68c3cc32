import hashlib
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import PIL.Image
import pytest
from ruamel.yaml import YAML

from nightowl.data.images import load_bgr
from nightowl.data.manifest import Box, Image, Manifest, Split
from nightowl.errors import DataError
from nightowl.training.view import label_line, write_view

WIDTH, HEIGHT = 40, 30
BOX = Box(0, 10, 6, 20, 12)
Save = Callable[[PIL.Image.Image, Path], None]


def save(picture: PIL.Image.Image, path: Path) -> None:
    picture.save(path)


def an_image(
    source: Path,
    name: str,
    split: Split = "train",
    boxes: tuple[Box, ...] = (BOX,),
    save: Save = save,
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Image:
    path = source / name
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(len(name)).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    save(PIL.Image.fromarray(noise), path)
    content = path.read_bytes()
    height, width = load_bgr(path).shape[:2]
    return Image(name, hashlib.sha256(content).hexdigest(), len(content), width, height, split, boxes)


def a_manifest(*images: Image) -> Manifest:
    return Manifest(("cell: red", "weiß"), images, "as given")


@pytest.mark.parametrize(
    ("box", "expected", "reason"),
    [
        (Box(1, 10, 10, 30, 20), [1, 0.2, 0.3, 0.2, 0.2], "centre and size as fractions"),
        (Box(0, 0, 0, 100, 50), [0, 0.5, 0.5, 1, 1], "the whole image"),
        (Box(0, -10, 40, 10, 60), [0, 0.05, 0.9, 0.1, 0.2], "clipped to the image"),
        (Box(0, 10, 10, 30, 20, ignore=True), None, "crowds are not trained on"),
        (Box(0, 100, 10, 130, 20), None, "outside"),
    ],
)
def test_a_box_becomes_a_label_line(box: Box, expected: list[float] | None, reason: str) -> None:
    line = label_line(box, width=100, height=50)
    assert (line is None) == (expected is None), reason
    if line and expected:
        assert [float(value) for value in line.split()] == pytest.approx(expected), reason


def test_images_are_linked_and_labels_written_in_ultralytics_places(tmp_path: Path) -> None:
    source = tmp_path / "source"
    images = (an_image(source, "a/x.jpg"), an_image(source, "b/x.png", "val"), an_image(source, "c/x.png", "test"))
    view = write_view(a_manifest(*images), source, tmp_path / "view")
    (train,), (val,) = (Path(path) for path in view.train_list.read_text().split()), view.val_list.read_text().split()
    assert (train.resolve(), Path(val).resolve()) == (source / "a/x.jpg", source / "b/x.png")
    label = Path(str(train).replace("/images/", "/labels/")).with_suffix(".txt")
    assert label.read_text() == "0 0.37500000 0.30000000 0.25000000 0.20000000\n"
    assert (view.num_train, view.num_val) == (1, 1)


def test_names_are_quoted_whatever_is_in_them(tmp_path: Path) -> None:
    images = (an_image(tmp_path / "s", "a.png"), an_image(tmp_path / "s", "b.png", "val"))
    view = write_view(a_manifest(*images), tmp_path / "s", tmp_path / "view")
    data = YAML(typ="safe", pure=True).load((view.folder / "data.yaml").read_text())
    assert list(data["names"].values()) == ["cell: red", "weiß"]


def test_paths_that_share_a_stem_or_hold_any_letters_stay_apart(tmp_path: Path) -> None:
    names = ["a/1.jpg", "b/1.jpg", "b/1.png", "b/Blüte 七.png", "images/labels/2.jpg"]
    images = [an_image(tmp_path / "s", name, boxes=(BOX._replace(class_id=index % 2),)) for index, name in enumerate(names)]
    view = write_view(a_manifest(*images, an_image(tmp_path / "s", "v.png", "val")), tmp_path / "s", tmp_path / "view")
    links = [Path(line) for line in view.train_list.read_text().splitlines()]
    assert [str(link.resolve().relative_to(tmp_path / "s")) for link in links] == names
    assert len({link.stem for link in links}) == len(names)


def turned(picture: PIL.Image.Image, path: Path) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    picture.save(path, exif=exif)


def with_a_tail(picture: PIL.Image.Image, path: Path) -> None:
    picture.save(path)
    path.write_bytes(path.read_bytes() + b"\0\0")


@pytest.mark.parametrize(
    ("name", "save", "reason"),
    [
        ("t.jpg", turned, "EXIF turns it"),
        ("t.jpg", with_a_tail, "ultralytics would encode it anew"),
        ("t.png", lambda picture, path: picture.convert("RGBA").save(path), "alpha"),
        ("t.png", lambda picture, path: picture.convert("P").save(path), "a palette"),
        ("t.png", lambda picture, path: picture.convert("I;16").save(path), "16 bits"),
        ("t.tif", save, "a format with many dialects"),
        ("t.png", lambda picture, path: picture.save(path, format="JPEG"), "the suffix lies: linked under its true one"),
    ],
)
def test_training_sees_the_pixels_that_evaluation_sees(tmp_path: Path, name: str, save: Save, reason: str) -> None:
    image = an_image(tmp_path / "s", name, save=save)
    before = (tmp_path / "s" / name).read_bytes()
    view = write_view(a_manifest(image, an_image(tmp_path / "s", "v.png", "val")), tmp_path / "s", tmp_path / "view")
    seen = cv2.imread(view.train_list.read_text().strip())
    assert seen is not None
    assert np.abs(seen.astype(int) - load_bgr(tmp_path / "s" / name)).max() <= 3, reason
    assert (tmp_path / "s" / name).read_bytes() == before


@pytest.mark.parametrize(
    ("split", "boxes", "expected"),
    [
        ("val", None, r"val: expected images, found none: no epoch could be chosen"),
        ("val", (), r"val: expected boxes, found none on 1 images: no epoch could be chosen; label some"),
        ("val", (BOX._replace(ignore=True),), r"val: expected boxes, found none"),
        ("train", None, r"train: expected images, found none: there is nothing to learn from"),
        ("train", (), r"train: expected boxes, found none on 1 images"),
    ],
)
def test_a_split_without_boxes_is_refused(tmp_path: Path, split: Split, boxes: tuple[Box, ...] | None, expected: str) -> None:
    other: Split = "train" if split == "val" else "val"
    images = [an_image(tmp_path / "s", "a.png", other)]
    if boxes is not None:
        images.append(an_image(tmp_path / "s", "b.png", split, boxes))
    with pytest.raises(DataError, match=expected):
        write_view(a_manifest(*images), tmp_path / "s", tmp_path / "view")
    assert not (tmp_path / "view").exists()


def test_an_image_too_small_to_train_on_is_named(tmp_path: Path) -> None:
    images = (an_image(tmp_path / "s", "dot.png", size=(9, 40)), an_image(tmp_path / "s", "v.png", "val"))
    with pytest.raises(DataError, match=r"dot\.png: 9x40 pixels; .* at least 10x10"):
        write_view(a_manifest(*images), tmp_path / "s", tmp_path / "view")


def test_an_image_that_changed_since_it_was_pinned_stops_the_training(tmp_path: Path) -> None:
    images = (an_image(tmp_path / "s", "a.png"), an_image(tmp_path / "s", "other.png", "val"))
    (tmp_path / "s" / "a.png").write_bytes((tmp_path / "s" / "other.png").read_bytes())
    with pytest.raises(DataError, match=r"a\.png: image changed since it was pinned"):
        write_view(a_manifest(*images), tmp_path / "s", tmp_path / "view")


def test_an_old_view_is_replaced_whole(tmp_path: Path) -> None:
    images = [an_image(tmp_path / "s", name) for name in ("a.png", "b.png")]
    val = an_image(tmp_path / "s", "v.png", "val")
    write_view(a_manifest(*images, val), tmp_path / "s", tmp_path / "view")
    view = write_view(a_manifest(images[1], val), tmp_path / "s", tmp_path / "view")
    assert len(list((view.folder / "images" / "train").iterdir())) == 1
