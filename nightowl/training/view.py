"""The dataset as ultralytics wants it: a folder of links and label files, written anew for each training.

Every image is compared with its pinned digest. One that every decoder shows alike is linked; any other (turned by EXIF,
with alpha or a palette, 16 bits, TIFF, WebP, not quite whole) is decoded by our own rule and written as PNG, so that training
sees the pixels that evaluation sees. Nothing is ever written beside the user's images.
"""

import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import cv2
import PIL.Image

from nightowl.data.images import decode_bgr, verified_bytes
from nightowl.data.manifest import Box, Image, Manifest, Split
from nightowl.errors import DataError
from nightowl.files import write_atomic
from nightowl.progress import track

_ROLES: tuple[Split, ...] = ("train", "val")
_ORIENTATION = 0x0112
_JPEG_END = b"\xff\xd9"
_MIN_SIDE_PX = 10  # ultralytics leaves smaller images out


@dataclass(frozen=True)
class View:
    """Where the view lies: lists of image paths, one a line, and how many there are. `classes` in order of their index."""

    folder: Path
    train_list: Path
    val_list: Path
    num_train: int
    num_val: int
    classes: tuple[str, ...]


def write_view(manifest: Manifest, source: Path, folder: Path) -> View:
    """Write train and val of the manifest, whose images lie under `source`, as a view in `folder`, replacing what was there.

    Raises:
        DataError: when a split has no images or no boxes, an image is too small, or one changed since it was pinned.
    """
    for role in _ROLES:
        _check(manifest.of(role), role)
    if folder.exists():
        shutil.rmtree(folder)
    lists = {role: _write_role(manifest.of(role), role, source, folder) for role in _ROLES}
    write_atomic(folder / "data.yaml", _data_yaml(manifest, folder))
    num = manifest.num_images()
    return View(folder, lists["train"], lists["val"], num["train"], num["val"], manifest.classes)


def label_line(box: Box, width: int, height: int) -> str | None:
    """A box as `class cx cy w h`, fractions of the image, clipped to it; None for a crowd or when nothing is left inside."""
    x1, x2 = (min(max(x, 0.0), width) for x in (box.x1, box.x2))
    y1, y2 = (min(max(y, 0.0), height) for y in (box.y1, box.y2))
    if box.ignore or x2 <= x1 or y2 <= y1:
        return None
    values = ((x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height)
    return " ".join([str(box.class_id), *(f"{value:.8f}" for value in values)])


def _check(images: tuple[Image, ...], role: Split) -> None:
    why = {"train": "there is nothing to learn from", "val": "no epoch could be chosen"}[role]
    if not images:
        raise DataError(f"{role}: expected images, found none: {why}; give this split some (params: data.split)")
    if not any(not box.ignore for image in images for box in image.boxes):
        raise DataError(f"{role}: expected boxes, found none on {len(images)} images: {why}; label some of them")
    for image in images:
        if min(image.width, image.height) < _MIN_SIDE_PX:
            raise DataError(
                f"{image.path}: {image.width}x{image.height} pixels; training takes images of at least "
                f"{_MIN_SIDE_PX}x{_MIN_SIDE_PX}: remove it from the source"
            )


def _write_role(images: tuple[Image, ...], role: Split, source: Path, folder: Path) -> Path:
    # The label of .../images/ROLE/X.jpg is looked for at .../labels/ROLE/X.txt. Names are numbers: no two paths collide.
    pixels, labels = folder / "images" / role, folder / "labels" / role
    pixels.mkdir(parents=True)
    labels.mkdir(parents=True)
    paths = []
    for number, image in enumerate(track(images, f"check {role} images")):
        paths.append(_write_pixels(image, source, pixels / f"{number:08}"))
        lines = [line for box in image.boxes if (line := label_line(box, image.width, image.height))]
        (labels / f"{number:08}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    listed = folder / f"{role}.txt"
    write_atomic(listed, "".join(f"{path}\n" for path in paths))
    return listed


def _write_pixels(image: Image, source: Path, stem: Path) -> Path:
    content = verified_bytes(source, image)
    suffix = _plain_suffix(content)
    if suffix:
        path = stem.with_suffix(suffix)
        path.symlink_to((source / image.path).absolute())
        return path
    path = stem.with_suffix(".png")
    encoded, png = cv2.imencode(".png", decode_bgr(content, image.path))
    assert encoded
    path.write_bytes(png.tobytes())
    return path


def _plain_suffix(content: bytes) -> str | None:
    """The usual suffix of an image that every decoder shows alike, or None."""
    with PIL.Image.open(io.BytesIO(content)) as picture:
        if picture.mode not in ("RGB", "L") or picture.getexif().get(_ORIENTATION, 1) != 1:
            return None
        if picture.format == "JPEG":
            return ".jpg" if content.endswith(_JPEG_END) else None  # else ultralytics encodes it anew
        return {"PNG": ".png", "BMP": ".bmp"}.get(picture.format or "")


def _data_yaml(manifest: Manifest, folder: Path) -> str:
    """For people, and for ultralytics by hand: JSON is YAML, and quotes any class name rightly."""
    names = dict(enumerate(manifest.classes))
    return json.dumps({"path": str(folder), "train": "train.txt", "val": "val.txt", "names": names}, indent=2) + "\n"
